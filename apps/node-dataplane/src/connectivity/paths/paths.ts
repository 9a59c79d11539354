import type { Link } from '@unbounded/netlink';
import type { Logger, Metrics } from '@unbounded/telemetry';
import type { Problem, WireGuardInterfacePlan, WireGuardPeerPlan } from '@unbounded/topology';
import type { NeutralPlan } from '../../data-path/kernel-plan.ts';
import { startThread, type AgentThread } from '../../thread/thread.ts';
import { type Call, type PathDevice, pathId, type PathReport, type PathWorkerSettings, type Told } from './messages.ts';
import { createPathMetrics } from './metrics.ts';
import { moveText } from './moves.ts';
import { monotonicMs, type TimedPath, timedPath } from './path-times.ts';
import type { RelayProxies } from '../relay/relay-proxies.ts';

/**
 * The paths to the WireGuard peers that have a relay, as the agent sees them: a thread proves the direct ones, chooses, and
 * is the only writer of these peers' endpoints. If the agent's own loop is busy, or the API server away, a move takes no longer.
 */
export interface Paths {
  /** Watches the plan's peers on the interfaces that are there. */
  apply(plan: NeutralPlan, links: ReadonlyMap<string, Link>): Promise<readonly Problem[]>;
  /** The relay's proxies or connections are others: the thread gets the last plan with them. */
  refresh(): void;
  /** What a peer that is new to WireGuard, or to its keeper, begins with: the endpoint chosen last, the proxy's, or the plan's. */
  endpointOf(device: WireGuardInterfacePlan, peer: WireGuardPeerPlan): string | undefined;
  states(): readonly TimedPath[];
  /** Moves since the last call, for people. */
  takeMoves(): readonly string[];
  /** Ends the thread; what the kernel holds stays. */
  stop(): Promise<void>;
}

/** Of the node, base64. */
interface PathKey {
  readonly privateKey: string;
  readonly publicKey: string;
}

export interface PathsOptions extends PathWorkerSettings {
  readonly relays: Pick<RelayProxies, 'endpointOf' | 'isUp'>;
  /** The node's key of a generation; undefined: there is none (any more). */
  readonly keyOf: (generation: number) => PathKey | undefined;
  /** The wall clock, milliseconds: for times that people are shown. */
  readonly now: () => number;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** A path is another. */
  readonly onChange: () => void;
}

/** In the checkout the source itself, in the image the bundle beside the agent's. */
const file = new URL(import.meta.url.endsWith('.ts') ? './paths.worker.ts' : './paths.worker.mjs', import.meta.url);

/** Moves that nobody asked about: more are not kept. */
const MOST_MOVES = 100;

type Sources = Pick<PathsOptions, 'relays' | 'keyOf'>;

const proxyOf = ({ relays, keyOf }: Sources, device: WireGuardInterfacePlan, peer: WireGuardPeerPlan) => {
  const key = keyOf(device.keyGeneration ?? 0);
  if (!key) return undefined;
  return relays.endpointOf({
    own: key.publicKey,
    peer: peer.publicKey,
    wireGuardPort: device.listenPort,
  });
};

const deviceOf = (device: WireGuardInterfacePlan, link: Link, sources: Sources): PathDevice[] => {
  const key = sources.keyOf(device.keyGeneration ?? 0);
  const peers = device.peers.flatMap((peer) => {
    if (!peer.relay) return [];
    const proxy = proxyOf(sources, device, peer);
    const { node, publicKey, endpoint, relay } = peer;
    const direct = endpoint === undefined ? {} : { direct: endpoint };
    return [{ node, publicKey, ...relay, ...direct, ...(proxy === undefined ? {} : { proxy }) }];
  });
  if (!key || peers.length === 0) return [];
  const { name, listenPort } = device;
  return [{ name, listenPort, isUserspace: link.kind?.kind === 'tun', privateKey: key.privateKey, peers }];
};

export const createPaths = ({ relays, keyOf, now, logger, metrics, onChange, ...settings }: PathsOptions): Paths => {
  const counted = createPathMetrics(metrics);
  const paths = new Map<string, TimedPath>();
  let moves: string[] = [];
  let last: { readonly plan: NeutralPlan; readonly links: ReadonlyMap<string, Link> } | undefined;
  let thread: AgentThread<Call> | undefined;

  const noteMove = (report: PathReport): void => {
    const { node, device, from, path, reason, endpoint } = report;
    const what = from === path ? 'as it was, for another reason or at another endpoint' : 'another';
    logger.info({ node, device, from, path, reason, endpoint }, `the path to a peer is ${what}`);
    if (from === path) return;
    counted.moved(report);
    if (from !== undefined && moves.length < MOST_MOVES) moves.push(moveText(report));
  };
  const onTold = (message: Told): void => {
    if (message.type === 'measured') return counted.measured(message);
    for (const id of message.gone) paths.delete(id);
    for (const report of message.paths) {
      noteMove(report);
      const id = pathId(report);
      paths.set(id, timedPath(paths.get(id), report, { wallMs: now(), elapsedMs: monotonicMs() }));
    }
    counted.paths(paths.values());
    onChange();
  };
  const give = async (): Promise<readonly Problem[]> => {
    const devices = (last?.plan.wireGuard ?? []).flatMap((device) => {
      const link = last!.links.get(device.name);
      return link ? deviceOf(device, link, { relays, keyOf }) : [];
    });
    if (devices.length === 0 && !thread) return []; // most nodes have no such peers, and no thread
    thread ??= startThread<Call, Told>({
      name: 'paths',
      what: 'the thread that chooses paths',
      file,
      settings,
      logger,
      onTold,
      onRestart: refresh,
    });
    return await thread.call({ type: 'apply', plan: { devices, isRelayUp: relays.isUp() } });
  };
  const refresh = (): void => void give().catch(() => undefined); // the next pass will tell

  return {
    async apply(plan, links) {
      last = { plan, links };
      try {
        return await give();
      } catch (error) {
        return [{ reason: 'PathProbeFailed', message: `paths are not reselected: ${(error as Error).message}` }];
      }
    },
    refresh,
    endpointOf(device, peer) {
      const chosen = paths.get(pathId({ device: device.name, publicKey: peer.publicKey }))?.endpoint;
      return chosen ?? proxyOf({ relays, keyOf }, device, peer) ?? peer.endpoint;
    },
    states: () => [...paths.values()],
    takeMoves() {
      const taken = moves;
      moves = [];
      return taken;
    },
    async stop() {
      await thread?.stop();
    },
  };
};
