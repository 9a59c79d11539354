import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

import { afterAll, beforeAll, expect, test } from 'vitest';

import { type ApiServer, resetCluster, startApiServer, startApp, until } from './index.ts';

const builder = fileURLToPath(new URL('../../../tools/build-app.mjs', import.meta.url));
let api: ApiServer;
beforeAll(async () => {
  api = await startApiServer();
  await resetCluster(api.cluster);
});
afterAll(() => api?.stop());

/** Generous: the machine may be busy. Alone it takes a quarter of this. */
const READY_WITHIN_MS = 1000;

test.each(['cidr-allocator', 'site-membership', 'gateway-health'])(
  'the bundle of %s starts fast and ends cleanly',
  async (name) => {
    execFileSync(process.execPath, [builder, name], { stdio: 'pipe' });
    const app = startApp(name, ['--kubeconfig', api.kubeconfig], { bundled: true });
    await until('ready', async () => (await app.health('/readyz')).status === 200);
    const started = app.log.find(({ msg }) => msg === 'started');
    expect(started?.['startedMs']).toBeLessThan(READY_WITHIN_MS);
    expect((await app.health('/metrics')).body).toContain('rest_client_requests_total');
    await until('leader', () => app.log.some(({ msg }) => msg === 'became leader'));
    expect(await app.stop()).toBe(0);
  },
);
