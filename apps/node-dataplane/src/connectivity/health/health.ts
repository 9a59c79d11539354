import type { Logger, Metrics } from '@unbounded/telemetry';
import type { Problem } from '@unbounded/topology';
import { startThread } from '../../thread/thread.ts';
import {
  type Call,
  type GroupReport,
  type HealthPlan,
  peerId,
  type PeerReport,
  type Told,
  type WorkerSettings,
} from './messages.ts';
import { createHealthMetrics } from './metrics.ts';
import type { NodeKeys } from './probe-keys.ts';

/**
 * The health of the paths to peers, as the agent sees it: a thread probes them and is the only writer of the kernel's
 * next-hop groups. If the agent's own loop is busy, or the API server away, a failover takes no longer.
 */
export interface Health {
  /**
   * Probes as planned and brings the groups into the kernel; when it returns, records may point at them.
   * @throws Error when the thread cannot do it, for example because it has just ended (it is started anew)
   */
  apply(plan: HealthPlan): Promise<readonly Problem[]>;
  /** Deletes the groups that the last plan does not have: only when no record points at them any more. */
  removeStale(): Promise<void>;
  /** Other keys of the node: probes made with any of them are believed from soon on. */
  setKeys(keys: NodeKeys): void;
  /** Every probed peer, by node and family. */
  states(): readonly PeerReport[];
  /** The next-hop groups as the kernel has them, a second old at most. */
  groups(): readonly GroupReport[];
  /** What the paths to nodes carry, where that is less than their devices allow, bytes. */
  pathMtuBytes(): ReadonlyMap<string, number>;
  /** Ends the thread; what the kernel holds stays. */
  stop(): Promise<void>;
}

export interface HealthOptions extends WorkerSettings {
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** A peer went, came or was found for the first time, or its path MTU is another; a lost probe is no such change. */
  readonly onChange: () => void;
  /** The groups are others. */
  readonly onGroups?: () => void;
}

const levelOf = ({ previous, state }: PeerReport): 'warn' | 'info' | 'debug' => {
  if (state === 'Unhealthy' && previous !== 'Recovering') return 'warn';
  return state === 'Healthy' && previous !== 'Degraded' ? 'info' : 'debug';
};

const logChange = (logger: Logger, report: PeerReport, known: PeerReport | undefined): void => {
  const { node, family, previous, state, pathMtuBytes } = report;
  logEcho(logger, report, known);
  if (previous !== undefined && previous !== state)
    logger[levelOf(report)]({ node, family, previous, state }, 'the health of a peer changed');
  if (pathMtuBytes !== known?.pathMtuBytes)
    logger.info({ node, family, pathMtuBytes: pathMtuBytes ?? 'as its device' }, 'path MTU changed');
};

/** Degraded is Healthy with a probe lost: nobody acts on it. */
const verdictOf = (report: PeerReport | undefined): string | undefined =>
  report?.state === 'Degraded' ? 'Healthy' : report?.state;

const logEcho = (logger: Logger, { node, family, forwards }: PeerReport, known: PeerReport | undefined): void => {
  if (forwards === known?.forwards || forwards === undefined) return;
  if (forwards) {
    if (known?.forwards === false) logger.info({ node, family }, 'echoes through a gateway come back again');
  } else logger.warn({ node, family }, 'echoes through a gateway do not come back');
};

/** Whether a report may change what is planned or told to people. */
const isNotable = (report: PeerReport, known: PeerReport | undefined): boolean =>
  verdictOf(report) !== verdictOf(known) ||
  report.pathMtuBytes !== known?.pathMtuBytes ||
  report.graceOver !== known?.graceOver ||
  report.forwards !== known?.forwards ||
  report.missesEchoes !== known?.missesEchoes ||
  report.knowsNextKey !== known?.knowsNextKey;

/** The narrowest path of each node that has one narrower than its device. */
const narrowestPaths = (peers: Iterable<PeerReport>): Map<string, number> => {
  const narrowest = new Map<string, number>();
  for (const { node, pathMtuBytes } of peers)
    if (pathMtuBytes !== undefined) narrowest.set(node, Math.min(narrowest.get(node) ?? pathMtuBytes, pathMtuBytes));
  return narrowest;
};

/** In the checkout the source itself, in the image the bundle beside the agent's. */
const file = new URL(import.meta.url.endsWith('.ts') ? './health.worker.ts' : './health.worker.mjs', import.meta.url);

export const startHealth = (options: HealthOptions): Health => {
  const { logger, metrics, onChange, onGroups = () => undefined, ...settings } = options;
  const counted = createHealthMetrics(metrics);
  const peers = new Map<string, PeerReport>();
  let groups: readonly GroupReport[] = [];
  let lastPlan: HealthPlan | undefined;
  let lastKeys: NodeKeys | undefined;

  const onTold = (message: Told): void => {
    if (message.type === 'measured') {
      for (const [id, rttMs] of message.rttMs) if (peers.has(id)) peers.set(id, { ...peers.get(id)!, rttMs });
      for (const [id, lossRatio] of message.lossRatios)
        if (peers.has(id)) peers.set(id, { ...peers.get(id)!, lossRatio });
      return counted.measured(message);
    }
    if (message.type === 'groups') {
      groups = message.groups;
      return onGroups();
    }
    const concernsAgent =
      message.gone.length > 0 || message.peers.some((peer) => isNotable(peer, peers.get(peerId(peer))));
    for (const id of message.gone) peers.delete(id);
    for (const peer of message.peers) {
      logChange(logger, peer, peers.get(peerId(peer)));
      peers.set(peerId(peer), peer);
    }
    counted.changed(message.peers, peers.values());
    if (concernsAgent) onChange();
  };
  const thread = startThread<Call, Told>({
    name: 'health',
    what: 'the thread that probes',
    file,
    settings,
    logger,
    onTold,
    onScheduled: counted.scheduled,
    onRestart() {
      if (lastKeys) thread.call({ type: 'setKeys', keys: lastKeys }).catch(() => undefined);
      if (lastPlan) thread.call({ type: 'apply', plan: lastPlan }).catch(() => undefined); // the next pass will tell
    },
  });

  return {
    apply(plan) {
      lastPlan = plan;
      return thread.call({ type: 'apply', plan });
    },
    async removeStale() {
      await thread.call({ type: 'removeStale' });
    },
    setKeys(keys) {
      lastKeys = keys;
      thread.call({ type: 'setKeys', keys }).catch(() => undefined); // a thread that has ended gets them when it is back
    },
    states: () => [...peers.values()],
    groups: () => groups,
    pathMtuBytes: () => narrowestPaths(peers.values()),
    stop: () => thread.stop(),
  };
};
