import { egressNodeSliceKind, GROUP_VERSION } from '@unbounded/crds';
import { clientOf } from '@unbounded/kube';
import { type ApiServer, borrowApiServer, resetCluster } from '@unbounded/testing';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createSliceReports } from './slice-reports.ts';

let api: ApiServer;
beforeAll(async () => {
  api = await borrowApiServer();
  await resetCluster(api.cluster);
});
afterAll(() => api?.stop());

test('a further slice is written once, and again when somebody has cleared its status', async () => {
  const client = clientOf(api.cluster, egressNodeSliceKind);
  await client.create({
    apiVersion: GROUP_VERSION,
    kind: 'EgressNodeSlice',
    metadata: { name: 'n1-1' },
    spec: {
      ...{ nodeName: 'n1', nodeUID: 'u1', index: 1 },
      owned: [{ address: '192.0.2.1', epoch: 1, announce: 'L2' }],
    },
  });
  let writes = 0;
  const reports = createSliceReports(api.cluster, () => writes++);
  const write = async (): Promise<number> => {
    const slices = [await client.get('n1-1')];
    const held = new Set(['192.0.2.1']);
    const confirmed = { slices, isInForce: true, held, staying: new Set<string>(), networks: [] };
    await reports.write(confirmed, AbortSignal.timeout(5000));
    return writes;
  };
  expect([await write(), await write(), await write()]).toEqual([1, 1, 1]);
  await client.mergePatch('n1-1', { status: null }, { subresource: 'status' });
  expect([await write(), await write()]).toEqual([2, 2]);
  expect((await client.get('n1-1')).status).toMatchObject({ held: [{ address: '192.0.2.1', epoch: 1 }] });
});
