import { inParallel, type ObjectWrites } from '@unbounded/controller-runtime';
import {
  type FDBEntry,
  GROUP_VERSION,
  L2_ENDPOINT_FINALIZER,
  type Neighbor,
  type NetworkEndpoint,
} from '@unbounded/crds';
import { ignoreGone, type KubeObject, type ResourceClient } from '@unbounded/kube';
import type { L2Entry, Removal } from '@unbounded/l2';
import type { Logger } from '@unbounded/telemetry';

import type { L2Metrics } from './l2-metrics.ts';
import { createLookups, type LookupClients } from './lookups.ts';

const PARALLEL_REMOVALS = 8;

export interface RemovalOptions {
  readonly clients: LookupClients & {
    readonly endpoints: ResourceClient<NetworkEndpoint>;
    readonly fdbEntries: ResourceClient<FDBEntry>;
    readonly neighbors: ResourceClient<Neighbor>;
  };
  readonly writes: ObjectWrites;
  readonly metrics: L2Metrics;
  readonly logger: Logger;
  readonly signal: AbortSignal;
}

/** An Event about a refused write is in the namespace of its object, and the program writes to none of users. */
const networkOf = ({ spec }: L2Entry | NetworkEndpoint): KubeObject => ({
  ...{ apiVersion: GROUP_VERSION, kind: 'Network' },
  metadata: { name: spec.network },
});

const textOf = ({ kind, metadata: { namespace, name } }: L2Entry | NetworkEndpoint): string =>
  `${kind} ${namespace === undefined ? '' : `${namespace}/`}${name}`;

/** Only as it was seen: a node that observed it again, or has it anew, has changed it. */
const versionOf = ({ metadata: { uid, resourceVersion } }: KubeObject) => ({
  ...(uid === undefined ? {} : { uid }),
  ...(resourceVersion === undefined ? {} : { resourceVersion }),
});

/** Whether it was this that removed it: a cache may show for a while what is gone. */
const didRemove = (work: Promise<void>): Promise<boolean> =>
  work.then(
    () => true,
    (error: unknown) => {
      ignoreGone(error);
      return false;
    },
  );

const deleteEntry = (entry: L2Entry, { clients, signal }: RemovalOptions): Promise<boolean> => {
  const client = entry.kind === 'FDBEntry' ? clients.fdbEntries : clients.neighbors;
  return didRemove(client.delete(entry.metadata.name, { ...versionOf(entry), signal }));
};

const deleteEndpoint = (endpoint: NetworkEndpoint, { clients, signal }: RemovalOptions): Promise<boolean> => {
  const { name, namespace } = endpoint.metadata;
  const options = { namespace: namespace ?? '', signal };
  return didRemove(clients.endpoints.delete(name, { ...options, ...versionOf(endpoint) }));
};

/** The finalizer goes, and the endpoint with it. */
const releaseEndpoint = async (endpoint: NetworkEndpoint, options: RemovalOptions): Promise<boolean> => {
  const { name, namespace, finalizers = [], deletionTimestamp } = endpoint.metadata;
  const rest = finalizers.filter((finalizer) => finalizer !== L2_ENDPOINT_FINALIZER);
  // As this has left it a moment ago, or somebody else.
  if (rest.length === finalizers.length) return deletionTimestamp === undefined && deleteEndpoint(endpoint, options);
  const patch = { metadata: { ...versionOf(endpoint), finalizers: rest } };
  const place = { namespace: namespace ?? '', signal: options.signal };
  const released = await options.clients.endpoints.mergePatch(name, patch, place).catch(ignoreGone);
  if (!released) return false;
  if (deletionTimestamp === undefined) await deleteEndpoint(released, options);
  return true;
};

const remove = async (removal: Removal, options: RemovalOptions): Promise<void> => {
  const { writes, metrics, logger } = options;
  const endpoint = 'endpoint' in removal ? removal.endpoint : undefined;
  let left = removal.entries.length;
  await inParallel(removal.entries, PARALLEL_REMOVALS, (entry) =>
    writes.attempt(networkOf(entry), `the end of ${textOf(entry)}`, async () => {
      if (await deleteEntry(entry, options)) metrics.removed(entry.kind);
      left--;
    }),
  );
  // While entries stand the endpoint says of which node they were.
  if (!endpoint || left > 0) return;
  await writes.attempt(networkOf(endpoint), `the end of ${textOf(endpoint)}`, async () => {
    const hasAgent = removal.reason === 'PodGone';
    if (!(await (hasAgent ? deleteEndpoint(endpoint, options) : releaseEndpoint(endpoint, options)))) return;
    metrics.removed(endpoint.kind);
    logger.info({ endpoint: textOf(endpoint), node: endpoint.spec.node, reason: removal.reason }, 'orphan removed');
  });
};

const subjectOf = (removal: Removal): L2Entry | NetworkEndpoint | undefined =>
  ('endpoint' in removal ? removal.endpoint : undefined) ?? removal.entries[0];

/** Each on its own: what cannot be looked up or removed keeps nothing else. */
export const writeRemovals = (removals: readonly Removal[], options: RemovalOptions): Promise<void> => {
  const isGone = createLookups(options.clients, options.signal);
  return inParallel(removals, PARALLEL_REMOVALS, async (removal) => {
    const subject = subjectOf(removal);
    if (!subject) return;
    await options.writes.attempt(networkOf(subject), `the look at what ${textOf(subject)} stands for`, async () => {
      if (await isGone(removal)) await remove(removal, options);
    });
  });
};
