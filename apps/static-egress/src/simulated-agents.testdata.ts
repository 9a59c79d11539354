import { setTimeout as sleep } from 'node:timers/promises';

import { type EgressNodeSlice, egressNodeSliceKind } from '@unbounded/crds';
import { type Cluster, clientOf } from '@unbounded/kube';

const LOOK_MS = 50;
/** Of the heartbeats; real agents send one every 5 s. */
const HEARTBEAT_MS = 500;
const SUBNETS = [
  { interface: 'eth0', cidr: '192.0.2.0/24' },
  { interface: 'eth0', cidr: '2001:db8::/64' },
] as const;

const grants = ({ spec }: EgressNodeSlice, isRelease: boolean) =>
  (spec.owned ?? [])
    .filter(({ release }) => (release === true) === isRelease)
    .map(({ address, epoch }) => ({ address, epoch }));

/** The agents of all nodes: each reports its networks, holds what it owns, and confirms what it was to release. */
export interface SimulatedAgents extends AsyncDisposable {
  /** Nodes whose agents are silent. */
  readonly silent: Set<string>;
  /** Addresses that stood as owned in slices of two nodes at a time: there must be none. */
  readonly doubleOwners: readonly string[];
}

/** An address that two slices give to different nodes. */
const doublesIn = (slices: readonly EgressNodeSlice[]): readonly string[] => {
  const owners = new Map<string, Set<string>>();
  for (const { spec } of slices) {
    for (const { address, release } of spec.owned ?? []) {
      if (release) continue;
      owners.set(address, (owners.get(address) ?? new Set()).add(spec.nodeUID));
    }
  }
  return [...owners].filter(([, nodes]) => nodes.size > 1).map(([address]) => address);
};

export const simulateAgents = (cluster: Cluster): SimulatedAgents => {
  const client = clientOf(cluster, egressNodeSliceKind);
  const ended = new AbortController();
  const silent = new Set<string>();
  const doubleOwners: string[] = [];
  const written = new Map<string, string>();
  const report = async (slice: EgressNodeSlice, heartbeat: number): Promise<void> => {
    const { metadata, spec } = slice;
    const status = {
      observedGeneration: metadata.generation,
      held: grants(slice, false),
      released: grants(slice, true),
      ...(spec.index === 0 ? { subnets: SUBNETS, heartbeat } : {}),
    };
    const text = JSON.stringify([metadata.uid, status]);
    if (silent.has(spec.nodeName) || written.get(metadata.name) === text) return;
    await client.mergePatch(metadata.name, { status }, { subresource: 'status' });
    written.set(metadata.name, text);
  };
  const work = async (): Promise<void> => {
    while (!ended.signal.aborted) {
      const heartbeat = Math.floor(performance.now() / HEARTBEAT_MS);
      const slices = await client.listAll().catch(() => []);
      doubleOwners.push(...doublesIn(slices));
      await Promise.all(slices.map((slice) => report(slice, heartbeat).catch(() => undefined)));
      await sleep(LOOK_MS);
    }
  };
  const working = work();
  return {
    silent,
    doubleOwners,
    [Symbol.asyncDispose]: async () => {
      ended.abort();
      await working;
      if (doubleOwners.length > 0)
        throw new Error(`addresses with two owners: ${[...new Set(doubleOwners)].join(', ')}`);
    },
  };
};
