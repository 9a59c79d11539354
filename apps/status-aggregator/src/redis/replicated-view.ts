import { randomUUID } from 'node:crypto';
import {
  type ClusterView,
  composeView,
  createMergePatch,
  isLost,
  type JsonObject,
  type ViewInputs,
} from '@unbounded/status';
import type { Logger } from '@unbounded/telemetry';
import type { Position } from '../view/position.ts';
import { packJson, unpackJson } from './bounded-gzip.ts';
import type { RedisMetrics } from './redis-metrics.ts';
import { MOST_PACKED_PATCH_BYTES, MOST_PACKED_VIEW_BYTES, MOST_VIEW_BYTES } from './redis.limits.ts';
import { createRelayedView, type RelayedView } from './relayed-view.ts';
import type { ViewEntry } from './view-entry.codec.ts';
import type { Tip, ViewStore } from './view-store.ts';

/** changed: the view is in Redis now. */
type Composition = 'changed' | 'same' | 'not-composer' | 'left-to-others';

/**
 * The view of all replicas: one composes, all relay. An update that is appended comes back by the stream, to its composer as well, so that there is
 * one way by which it becomes a replica's. A new history its composer has at once; the others load it.
 */
export interface ReplicatedView {
  readonly relayed: RelayedView;
  /** false: it does not follow from what is here; everything has to be loaded. */
  follow(entry: ViewEntry): Promise<boolean>;
  load(tip: Tip, serverId: string): Promise<void>;
  /**
   * A new view, if the lease is ours.
   * @throws Error: it cannot be made, or not be stored; another replica takes the lease then
   */
  compose(inputs: ViewInputs): Promise<Composition>;
  /** Another replica composes from now on. */
  release(): Promise<void>;
}

export interface ReplicatedViewOptions {
  readonly store: ViewStore;
  readonly metrics: Pick<RedisMetrics, 'skipped' | 'composing'>;
  readonly now: () => Date;
  readonly logger: Logger;
  readonly leaseMs?: number;
}

/** Three compositions and a time-out. */
const LEASE_MS = 10_000;
/** A composer that is refused as often does not follow what the snapshot says: somebody else wrote there. */
const MOST_BEHIND = 3;

/** Turns that a replica that could not compose leaves to the others. */
const TURNS_LEFT = 2;
/** Of so many turns a replica that has lost the API server leaves some: others may not have lost it. */
const TURNS_OF_LOST = 10;

/** Longer than a node may take to its first report. */
const KNOWN_MS = 60_000;

/** Nodes that another replica knew already: this one has just started, and their silence is not new. */
const withKnown = (inputs: ViewInputs, names: ReadonlySet<string>): ViewInputs => ({
  ...inputs,
  nodes: inputs.nodes.map((node) =>
    names.has(node.name) ? { ...node, knownMs: Math.max(node.knownMs, KNOWN_MS) } : node,
  ),
});

const asDocument = (view: ClusterView): JsonObject => view as unknown as JsonObject;

/** Undefined: nothing changed. An empty patch begins a history, where there is none to go on with or the difference is too large. */
const patchFor = async (before: ClusterView | undefined, next: ClusterView): Promise<Buffer | undefined> => {
  if (!before) return Buffer.alloc(0);
  const patch = createMergePatch(asDocument(before), asDocument(next));
  if (!patch) return undefined;
  const packed = await packJson(patch);
  return packed.length > MOST_PACKED_PATCH_BYTES ? Buffer.alloc(0) : packed;
};

type Turns = Pick<ReplicatedViewOptions, 'store' | 'metrics'> & { readonly leaseMs: number };

/** Who has the lease composes. A replica that cannot, or not from what is, gives it back, and leaves some turns to the others. */
const createTurns = ({ store, metrics, leaseMs }: Turns, token: string) => {
  let [turnsLeft, turnsOfLost] = [0, 0];
  const leave = async (): Promise<void> => {
    turnsLeft = TURNS_LEFT;
    metrics.composing(false);
    await store.release(token).catch(() => {}); // else it expires
  };
  return async (compose: () => Promise<Composition>, isFromOld: boolean): Promise<Composition> => {
    turnsOfLost = isFromOld ? turnsOfLost + 1 : 0;
    if (turnsLeft > 0) {
      turnsLeft--;
      return 'left-to-others';
    }
    if (turnsOfLost % TURNS_OF_LOST === 1) {
      await leave();
      return 'left-to-others';
    }
    const isComposer = await store.hold(token, leaseMs);
    metrics.composing(isComposer);
    if (!isComposer) return 'not-composer';
    try {
      return await compose();
    } catch (error) {
      await leave();
      throw error;
    }
  };
};

export const createReplicatedView = ({
  store,
  metrics,
  now,
  logger,
  leaseMs = LEASE_MS,
}: ReplicatedViewOptions): ReplicatedView => {
  const relayed = createRelayedView();
  const token = randomUUID();
  let at: Position | undefined;
  let serverId = '';
  let mustBegin = true;
  let known: ReadonlySet<string> = new Set();
  let behind = 0;
  const inTurn = createTurns({ store, metrics, leaseMs }, token);
  const compose = async (inputs: ViewInputs): Promise<Composition> => {
    const before = relayed.current()?.view;
    // As it is read back: members that are undefined are none.
    const next = JSON.parse(
      JSON.stringify(composeView(withKnown(inputs, known), before, now().toISOString())),
    ) as ClusterView;
    const packedPatch = await patchFor(mustBegin || behind >= MOST_BEHIND ? undefined : before, next);
    if (!packedPatch) return 'same';
    const packedView = await packJson(next);
    if (packedView.length > MOST_PACKED_VIEW_BYTES) throw new Error(`the view: ${packedView.length} bytes compressed`);
    const isNew = packedPatch.length === 0 || !at;
    const after = isNew ? { history: randomUUID().slice(0, 8), sequence: 1 } : { ...at!, sequence: at!.sequence + 1 };
    const result = await store.append({ token, serverId, before: at, after, packedView, packedPatch });
    behind = result === 'behind' ? behind + 1 : 0;
    if (result === 'ok' && isNew) {
      logger.info({ history: after.history }, 'a history of the view begins');
      relayed.load({ position: after, view: next }, []);
      [at, mustBegin] = [after, false];
    }
    if (result === 'lost') metrics.composing(false);
    return result === 'ok' ? 'changed' : result === 'lost' ? 'not-composer' : 'same';
  };
  return {
    relayed,
    async follow({ position, packed }) {
      const expected = relayed.expects(position);
      if (expected === 'known') return true;
      if (expected === 'gap' || packed.length === 0) return false;
      const result = relayed.apply(position, await unpackJson(packed, MOST_VIEW_BYTES));
      if (result === 'applied') at = position;
      else metrics.skipped('view-entry');
      return result === 'applied';
    },
    async load({ snapshot, snapshotServerId }, currentServerId) {
      serverId = currentServerId;
      mustBegin = !snapshot || snapshotServerId !== serverId;
      behind = 0;
      // A view of another server stands until the next history begins; it is better than none.
      if (!snapshot || (mustBegin && relayed.current())) return;
      if (!relayed.current()) known = new Set(Object.keys(snapshot.view.nodes));
      relayed.load(snapshot, await store.updates());
      at = snapshot.position;
    },
    compose: (inputs) => inTurn(() => compose(inputs), isLost(inputs)),
    release: () => store.release(token),
  };
};
