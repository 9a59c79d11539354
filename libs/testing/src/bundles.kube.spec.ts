import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

import { afterAll, beforeAll, expect, test } from 'vitest';

import { type ApiServer, resetCluster, startApiServer, startApp, until } from './index.ts';

const node = fileURLToPath(new URL('../../../tools/node', import.meta.url));
const builder = fileURLToPath(new URL('../../../tools/bundle.ts', import.meta.url));
let api: ApiServer;
beforeAll(async () => {
  api = await startApiServer();
  await resetCluster(api.cluster);
});
afterAll(() => api?.stop());

test.each(['cidr-allocator', 'site-membership', 'gateway-health'])(
  'the bundle of %s starts, works and ends cleanly',
  async (name) => {
    execFileSync(node, [builder, name], { stdio: 'pipe' });
    const app = startApp(name, ['--kubeconfig', api.kubeconfig], { bundled: true });
    await until('ready', async () => (await app.health('/readyz')).status === 200);
    expect((await app.health('/metrics')).body).toContain('rest_client_requests_total');
    await until('leader', () => app.log.some(({ msg }) => msg === 'became leader'));
    expect(await app.stop()).toBe(0);
  },
);
