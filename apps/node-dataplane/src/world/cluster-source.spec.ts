import type { Cluster } from '@unbounded/kube';
import { siteKind } from '@unbounded/crds';
import { silentLogger } from '@unbounded/telemetry';
import { expect, test } from 'vitest';
import { createClusterSource, type NodeSource } from './cluster-source.ts';

/** A cluster that answers nothing. */
const cluster = { client: () => ({ resource: { plural: 'sites' }, list: () => new Promise(() => undefined) }) };

test('a source that is stopped leaves no handler at the Node, which outlives it', async () => {
  const handlers = new Set<() => void>();
  const own: NodeSource = {
    ...{ isSynced: true, version: 0, node: () => undefined, stop: async () => undefined },
    onChange(handler) {
      const call = (): void => handler();
      handlers.add(call);
      return () => void handlers.delete(call);
    },
  };
  const open = () =>
    createClusterSource(cluster as unknown as Cluster, { sites: siteKind }, { own, logger: silentLogger });
  const stays = open();
  stays.onChange(() => undefined);
  for (let count = 0; count < 10; count++) {
    const source = open();
    source.onChange(() => undefined);
    void source.stop();
  }
  expect(handlers.size).toBe(1);
});
