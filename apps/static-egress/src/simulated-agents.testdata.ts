import { setTimeout as sleep } from 'node:timers/promises';

import { type EgressNodeSlice, egressNodeSliceKind } from '@unbounded/crds';
import { type Cluster, clientOf } from '@unbounded/kube';

const LOOK_MS = 100;
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

const statusOf = (slice: EgressNodeSlice, heartbeatMs: number) => ({
  observedGeneration: slice.metadata.generation,
  held: grants(slice, false),
  released: grants(slice, true),
  ...(slice.spec.index === 0 ? { subnets: SUBNETS, heartbeat: Math.floor(performance.now() / heartbeatMs) } : {}),
});

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

export interface SimulationOptions {
  readonly heartbeatMs?: number;
}

export const simulateAgents = (
  cluster: Cluster,
  { heartbeatMs = HEARTBEAT_MS }: SimulationOptions = {},
): SimulatedAgents => {
  const client = clientOf(cluster, egressNodeSliceKind);
  const ended = new AbortController();
  const { signal } = ended;
  const silent = new Set<string>();
  const doubleOwners: string[] = [];
  const slices = new Map<string, EgressNodeSlice>();
  const written = new Map<string, string>();
  /** Whether there was something to write, and it was taken. */
  const writeStatus = async (slice: EgressNodeSlice): Promise<boolean> => {
    const { name, uid } = slice.metadata;
    const status = statusOf(slice, heartbeatMs);
    const text = JSON.stringify([uid, status]);
    if (silent.has(slice.spec.nodeName) || written.get(name) === text) return false;
    written.set(name, text);
    return client.mergePatch(name, { status }, { subresource: 'status' }).then(
      () => true,
      () => {
        written.delete(name);
        return false;
      },
    );
  };
  const reporting = new Set<string>();
  /** One write of a slice at a time: a heartbeat that arrives behind a confirmation that was sent after it would take that back. */
  const report = async ({ metadata: { name } }: EgressNodeSlice): Promise<void> => {
    if (reporting.has(name)) return;
    reporting.add(name);
    for (let slice = slices.get(name); slice && (await writeStatus(slice)); slice = slices.get(name));
    reporting.delete(name);
  };
  const note = (slice: EgressNodeSlice): void => {
    slices.set(slice.metadata.name, slice);
    doubleOwners.push(...doublesIn([...slices.values()]));
    void report(slice);
  };
  const follow = async (): Promise<void> => {
    const { items, resourceVersion } = await client.list({ signal });
    slices.clear();
    items.forEach(note);
    for await (const event of client.watch({ resourceVersion, timeoutSeconds: 600, signal })) {
      if (event.type === 'ADDED' || event.type === 'MODIFIED') note(event.object);
      else if (event.type === 'DELETED') slices.delete(event.object.metadata.name);
      else if (event.type === 'ERROR') return;
    }
  };
  const followAll = async (): Promise<void> => {
    while (!signal.aborted) {
      await follow().catch(() => undefined);
      await sleep(LOOK_MS);
    }
  };
  const following = followAll();
  // Heartbeats, what could not be written, and agents that are not silent any more.
  const beating = setInterval(() => slices.values().forEach((slice) => void report(slice)), LOOK_MS);
  return {
    silent,
    doubleOwners,
    [Symbol.asyncDispose]: async () => {
      clearInterval(beating);
      ended.abort();
      await following;
      if (doubleOwners.length > 0)
        throw new Error(`addresses with two owners: ${[...new Set(doubleOwners)].join(', ')}`);
    },
  };
};
