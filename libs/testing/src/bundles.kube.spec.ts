import { afterAll, beforeAll, expect, test } from 'vitest';

import { type ApiServer, appEntry, resetCluster, startApiServer, startApp, until } from './index.ts';

let api: ApiServer;
beforeAll(async () => {
  api = await startApiServer();
  await resetCluster(api.cluster);
});
afterAll(() => api?.stop());

test('the bundle of status-aggregator starts, serves by its certificate and ends cleanly', async () => {
  expect(appEntry('status-aggregator'), 'no bundle, or an old one: run tools/build').toContain('/dist/');
  const app = startApp('status-aggregator', ['--kubeconfig', api.kubeconfig, '--port', '0', '--namespace', 'default']);
  await until('ready', async () => (await app.health('/readyz')).status === 200);
  expect((await app.health('/metrics')).body).toContain('unbounded_status_clients 0');
  expect(await app.stop()).toBe(0);
});

test.each(['cidr-allocator', 'site-membership', 'gateway-health', 'static-egress', 'l2-networks', 'tailnet-registrar'])(
  'the bundle of %s starts, works and ends cleanly',
  async (name) => {
    expect(appEntry(name), 'no bundle, or an old one: run tools/build').toContain('/dist/');
    const app = startApp(name, ['--kubeconfig', api.kubeconfig]);
    await until('ready', async () => (await app.health('/readyz')).status === 200);
    expect((await app.health('/metrics')).body).toContain('rest_client_requests_total');
    await until('leader', () => app.log.some(({ msg }) => msg === 'became leader'));
    expect(await app.stop()).toBe(0);
  },
);
