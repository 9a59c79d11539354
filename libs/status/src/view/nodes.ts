import type { ClusterPool, ClusterNode, ViewInputs } from './inputs.ts';
import { freshReport } from './inputs.ts';
import type { NodeState, NodeView } from './cluster-view.ts';
import { type PeerVerdict, summarize } from './node-summary.ts';

/** The state of each node: by its own report, and by what its peers observe of it. */

interface Counted {
  probing: number;
  mute: number;
  /** Answers no probe, returns echoes. */
  returning: number;
  /** Echoes through it do not return. */
  notForwarding: number;
}

/** What the peers of a node that report have of its answers. */
export type Observed = Readonly<Counted>;

const countVerdict = (counted: Counted, verdict: PeerVerdict): void => {
  if (verdict === 'unprobed') return;
  counted.probing++;
  if (verdict === 'returns') counted.returning++;
  if (verdict === 'mute') counted.mute++;
};

/** By observed node. */
export const observeNodes = (inputs: ViewInputs): ReadonlyMap<string, Observed> => {
  const observed = new Map<string, Counted>(
    inputs.nodes.map(({ name }) => [name, { probing: 0, mute: 0, returning: 0, notForwarding: 0 }]),
  );
  for (const { name } of inputs.nodes) {
    const report = freshReport(inputs, name);
    if (!report) continue;
    for (const [peer, { verdict, forwards }] of summarize(report).peers) {
      const counted = observed.get(peer);
      if (!counted) continue; // a node that is none any more
      countVerdict(counted, verdict);
      if (!forwards) counted.notForwarding++;
    }
  }
  return observed;
};

/** More than half of those that probe it get no answer: one peer alone may be at fault itself. */
export const isMute = ({ probing, mute }: Observed): boolean => mute * 2 > probing;

/** Of those that probe it more than half get no answer, and of these more than half have their echoes back: it forwards. */
export const isReturning = ({ probing, mute, returning }: Observed): boolean =>
  returning > mute && (mute + returning) * 2 > probing;

/** Of those that probe it more than half have no echoes back through it. */
export const isNotForwarding = ({ probing, notForwarding }: Observed): boolean => notForwarding * 2 > probing;

type AllObserved = ReadonlyMap<string, Observed>;

/** A peer that is down as a whole is no fault of whoever probes it. */
const isWellWith = (observed: AllObserved, peer: string, verdict: PeerVerdict): boolean => {
  if (verdict === 'answers' || verdict === 'unprobed') return true;
  const seen = observed.get(peer);
  return seen !== undefined && (isMute(seen) || isReturning(seen));
};

/** What a node says of its peers is in the view by the peers themselves. */
export const OF_PEERS = 'PeersUnhealthy';

const stateOf = (inputs: ViewInputs, { name, faults }: ClusterNode, observed: AllObserved): NodeState => {
  const report = freshReport(inputs, name);
  const seen = observed.get(name)!;
  if (!report) return isMute(seen) && !isReturning(seen) ? 'Unreachable' : 'Unknown';
  const { peers } = summarize(report);
  const isWell =
    report.isComplete &&
    report.problems.every(({ reason }) => reason === OF_PEERS) &&
    faults.every(({ reason }) => reason === OF_PEERS) &&
    [...peers].every(([peer, { verdict }]) => isWellWith(observed, peer, verdict));
  return isWell && !isMute(seen) ? 'Healthy' : 'Degraded';
};

const poolsOf = (pools: readonly ClusterPool[]): ReadonlyMap<string, readonly string[]> => {
  const byNode = new Map<string, string[]>();
  for (const { name, gateways } of pools)
    for (const node of gateways) byNode.set(node, [...(byNode.get(node) ?? []), name]);
  return byNode;
};

const peersOf = (inputs: ViewInputs, name: string): Pick<NodeView, 'peers'> => {
  const report = freshReport(inputs, name);
  if (!report) return {};
  const probed = [...summarize(report).peers.values()].filter(({ verdict }) => verdict !== 'unprobed');
  const healthy = probed.filter(({ verdict }) => verdict === 'answers').length;
  const relayed = probed.filter(({ relayedReason }) => relayedReason !== undefined).length;
  return { peers: { total: probed.length, healthy, relayed } };
};

const sourceOf = (inputs: ViewInputs, { name, faults }: ClusterNode): NodeView['source'] => {
  if (freshReport(inputs, name)) return 'report';
  return faults.length > 0 ? 'api' : 'none';
};

/** `problems` is left for whoever counts them. */
export const composeNodes = (inputs: ViewInputs, observed: AllObserved): Map<string, Omit<NodeView, 'problems'>> => {
  const pools = poolsOf(inputs.pools);
  return new Map(
    inputs.nodes.map((node) => {
      const { name, site, ready } = node;
      const received = inputs.reports.get(name);
      const source = sourceOf(inputs, node);
      const view = {
        ...(site === undefined ? {} : { site }),
        pools: [...(pools.get(name) ?? [])],
        state: stateOf(inputs, node, observed),
        source,
        ready,
        ...(received && source !== 'report' ? { lastReportTime: received.time } : {}),
        ...(received ? { agentVersion: received.report.agentVersion } : {}),
        ...peersOf(inputs, name),
      };
      return [name, view];
    }),
  );
};
