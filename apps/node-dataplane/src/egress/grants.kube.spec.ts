import { type EgressNodeSlice, egressNodeSliceKind, GROUP_VERSION } from '@unbounded/crds';
import { clientOf } from '@unbounded/kube';
import { silentLogger as logger } from '@unbounded/telemetry';
import { type ApiServer, borrowApiServer, resetCluster } from '@unbounded/testing';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createConfirmGrants } from './grants.ts';

let api: ApiServer;
let seen: EgressNodeSlice;
const ADDRESSES = ['192.0.2.1', '192.0.2.2'];
const owned = (addresses: readonly string[]) =>
  addresses.map((address) => ({ address, epoch: 1, announce: 'L2' as const }));
beforeAll(async () => {
  api = await borrowApiServer();
  await resetCluster(api.cluster);
  seen = await clientOf(api.cluster, egressNodeSliceKind).create({
    apiVersion: GROUP_VERSION,
    kind: 'EgressNodeSlice',
    metadata: { name: 'n1-0' },
    spec: { nodeName: 'n1', nodeUID: 'u1', index: 0, owned: owned(ADDRESSES) },
  });
});
afterAll(() => api?.stop());

test('what the store has, the node may take', async () => {
  expect(await createConfirmGrants(api.cluster, logger)([seen], new Set())).toEqual(new Set(ADDRESSES));
});

test('a slice that was written since gives nothing new, and what the node has stays until it hears of it', async () => {
  const client = clientOf(api.cluster, egressNodeSliceKind);
  await client.mergePatch('n1-0', { spec: { owned: owned(['192.0.2.1']) } });
  expect(await createConfirmGrants(api.cluster, logger)([seen], new Set(['192.0.2.2']))).toEqual(
    new Set(['192.0.2.2']),
  );
});

test('nor does one that was deleted, or an API server that does not answer', async () => {
  await clientOf(api.cluster, egressNodeSliceKind).delete('n1-0');
  expect(await createConfirmGrants(api.cluster, logger)([seen], new Set())).toEqual(new Set());
});
