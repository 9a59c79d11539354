import { isNftTable, nftTableOf } from '@unbounded/config/ownership';
import { nodeConditions } from '@unbounded/crds';
import { ECHO_PORTS } from '@unbounded/health';
import { formatAddress, parsePrefix } from '@unbounded/ip';
import type { Nftables, TableSpec, TracedDrop } from '@unbounded/nftables';
import type { Logger, Metrics } from '@unbounded/telemetry';
import { echoAddress, type Problem } from '@unbounded/topology';
import { DEVICES } from '../../data-path/devices.ts';
import { ownEchoAddresses } from '../../data-path/echo-addresses.ts';
import type { KernelPlan } from '../../data-path/kernel-plan.ts';
import type { NodeCondition, NodeEvent } from '../../section.port.ts';
import { UDP } from '../../kernel/protocol-numbers.ts';
import {
  type Blocker,
  faultProblems,
  type ForwardingFault,
  forwardingFault,
  type ForwardingProblem,
} from './forwarding-faults.ts';
import type { PeerReport } from './messages.ts';

/**
 * Whether this node forwards, as its own echoes and those of its peers show; and where it does not, who drops them: the kernel traces
 * echoes through its nftables until one is dropped. Nothing is traced while echoes come back.
 */
export interface ForwardingWatch {
  /** What is wrong by now, and the condition of the Node; traces where that says more. */
  look(plan: KernelPlan, peers: readonly PeerReport[]): Forwarding;
  takeEvents(): NodeEvent[];
  stop(): void;
}

interface Forwarding {
  readonly problems: readonly Problem[];
  /** undefined: no echoes are sent, and nobody misses any. */
  readonly condition: NodeCondition | undefined;
}

const told = (problems: readonly ForwardingProblem[], peers: readonly PeerReport[]): Forwarding => {
  const [problem] = problems;
  if (problem) return { problems, condition: { type: nodeConditions.forwarding, status: 'False', ...problem } };
  const message = 'its echoes come back, and no peer misses its own through this node';
  const isShown = peers.some(({ forwards }) => forwards === true);
  return {
    problems,
    condition: isShown
      ? { type: nodeConditions.forwarding, status: 'True', reason: 'EchoesReturn', message }
      : undefined,
  };
};

export interface ForwardingWatchOptions {
  readonly nft: Pick<Nftables, 'replaceTable' | 'deleteTable' | 'traceDrops' | 'ruleComment'>;
  readonly metrics: Metrics;
  readonly logger: Logger;
  /** A trace has ended: what it found is told by the next look. */
  readonly onFound: () => void;
}

const TRACE = { family: 'inet', name: nftTableOf('trace') } as const;
/** Before everything else that sees packets, at a place that no other table of ours has. */
const FIRST = -310;
/** A trace makes the kernel write dozens of messages a packet: of a few senders, for a moment, every now and then. */
const SENDERS = 4;
const [SHORTEST_TRACE_MS, LONGEST_TRACE_MS] = [3500, 60_000];
/** Between traces; while nothing else comes of them ever longer. */
const [AGAIN_MS, AGAIN_AT_LAST_MS] = [30_000, 600_000];

/** Of each sender, also where somebody floods the node in its name. */
const TRACED = { perSecond: 20, burst: 20 } as const;

const traceTable = (senders: readonly string[], devices: readonly string[]): TableSpec => ({
  ...TRACE,
  sets: [{ name: 'devices', type: 'ifname', elements: devices }],
  chains: [
    {
      name: 'echoes',
      base: { type: 'filter', hook: 'prerouting', priority: FIRST, policy: 'accept' },
      rules: senders.map((sender) => ({
        comment: 'who drops it',
        expressions: [
          { match: 'device', key: 'iifname', op: '==', set: 'devices' },
          {
            match: 'payload',
            field: sender.includes(':') ? ('ip6.saddr' as const) : ('ip.saddr' as const),
            op: '==',
            value: sender,
          },
          { match: 'meta', key: 'l4proto', op: '==', value: UDP },
          { match: 'payload', field: 'th.sport', op: '==', value: ECHO_PORTS.source },
          { match: 'payload', field: 'th.dport', op: '==', value: ECHO_PORTS.destination },
          { match: 'rate-below', ...TRACED },
          { set: 'nftrace' },
        ],
      })),
    },
  ],
});

/** Whose echoes are lost here: this node's own, and those of peers that say so, by the blocks that these hold. */
const sendersOf = (plan: KernelPlan, { families, deaf }: ForwardingFault): string[] => {
  const own = [...ownEchoAddresses(plan.echoes)].flatMap(([family, address]) =>
    families.includes(family) ? [address] : [],
  );
  const others = deaf.flatMap(({ node, family }) =>
    (plan.holdings.find((holding) => holding.node === node)?.blocks ?? [])
      .map(parsePrefix)
      .filter((block) => block.family === family)
      .flatMap((block) => {
        const host = echoAddress(block);
        return host ? [formatAddress({ family: host.family, value: host.address })] : [];
      }),
  );
  return [...new Set([...own, ...others])].slice(0, SENDERS);
};

/** Traces until a packet is dropped by a table that is not ours, at most for a while. */
const trace = async (
  { nft }: ForwardingWatchOptions,
  {
    senders,
    devices,
    forMs,
  }: { readonly senders: readonly string[]; readonly devices: readonly string[]; readonly forMs: number },
  ended: AbortSignal,
): Promise<Blocker | undefined> => {
  const found = Promise.withResolvers<TracedDrop | undefined>();
  // What our own table drops is no echo.
  const monitor = nft.traceDrops(TRACE, (drop) => void (isNftTable(drop.table) || found.resolve(drop)));
  const timer = setTimeout(() => found.resolve(undefined), forMs).unref();
  const onEnd = (): void => found.resolve(undefined);
  ended.addEventListener('abort', onEnd);
  try {
    await nft.replaceTable(traceTable(senders, devices));
    const drop = await found.promise;
    if (!drop) return undefined;
    const { handle } = drop;
    const comment = handle === undefined ? undefined : await nft.ruleComment({ ...drop, handle });
    return { ...drop, ...(comment === undefined ? {} : { comment }) };
  } finally {
    clearTimeout(timer);
    ended.removeEventListener('abort', onEnd);
    monitor.close();
    await nft.deleteTable(TRACE.family, TRACE.name);
  }
};

const tunnelsOf = ({ tunnels, wireGuard }: KernelPlan): string[] => [
  ...tunnels.map(({ device }) => device),
  ...wireGuard.map(({ name }) => name),
];

const textOf = ({ family, table, chain }: Blocker): string => `${family} ${table} ${chain}`;

/** The chain that was seen to drop echoes, and its metric. */
const createBlockerSeen = (metrics: Metrics) => {
  const blocked = metrics.gauge({
    name: 'unbounded_forwarding_blocked',
    help: 'Whether echoes showed that a chain of the host drops packets of the overlay, by table and chain.',
    labels: ['family', 'table', 'chain'],
  });
  let seen: Blocker | undefined;
  const set = ({ family, table, chain }: Blocker, value: 0 | 1): void => blocked.set({ family, table, chain }, value);
  return {
    get: () => seen,
    isNews: (found: Blocker): boolean => !seen || textOf(found) !== textOf(seen),
    show(next: Blocker | undefined): void {
      if (seen && (!next || textOf(next) !== textOf(seen))) set(seen, 0);
      if (next) set(next, 1);
      seen = next;
    },
  };
};

export const createForwardingWatch = (options: ForwardingWatchOptions): ForwardingWatch => {
  const { logger, onFound } = options;
  const blocker = createBlockerSeen(options.metrics);
  const ended = new AbortController();
  let [isTracing, isTraced] = [false, false];
  /** The last trace was for one peer alone. */
  let wasDoubtful = false;
  let againMs = AGAIN_MS;
  let tracedMs = -Infinity;
  let events: NodeEvent[] = [];

  const onTraced = (fault: ForwardingFault, devices: readonly string[], found: Blocker | undefined): void => {
    const isNews = found !== undefined && blocker.isNews(found);
    againMs = isNews || !isTraced ? AGAIN_MS : Math.min(2 * againMs, AGAIN_AT_LAST_MS);
    blocker.show(found);
    [isTracing, isTraced] = [false, true];
    const [problem] = faultProblems(fault, { blocker: found, isTraced: true, devices });
    if (isNews && problem) {
      const { reason, message: note } = problem;
      events.push({ type: 'Warning', reason, action: 'TraceEchoes', note });
    }
    onFound();
  };
  const begin = (plan: KernelPlan, fault: ForwardingFault): void => {
    const devices = tunnelsOf(plan);
    const longestMs = Math.max(0, ...plan.probes.map(({ intervalMs }) => intervalMs));
    const forMs = Math.min(Math.max(SHORTEST_TRACE_MS, 3 * longestMs), LONGEST_TRACE_MS);
    tracedMs = performance.now();
    [isTracing, wasDoubtful] = [true, fault.isDoubtful];
    trace(options, { senders: sendersOf(plan, fault), devices: [DEVICES.echo, ...devices], forMs }, ended.signal)
      .then((found) => onTraced(fault, devices, found))
      .catch((error: unknown) => {
        isTracing = false;
        logger.warn({ err: error }, 'cannot trace who drops what is forwarded');
      });
  };

  const startOver = (): void => void ([isTraced, tracedMs, againMs] = [false, -Infinity, AGAIN_MS]);

  return {
    look(plan, peers) {
      const fault = forwardingFault(peers);
      if (!fault) {
        blocker.show(undefined);
        if (!isTracing) startOver();
        return told([], peers);
      }
      const isSurerNow = wasDoubtful && !fault.isDoubtful && !blocker.get();
      // What one peer alone made it look for says nothing of the packets of others.
      if (!isTracing && isSurerNow) startOver();
      if (!isTracing && performance.now() - tracedMs > againMs) begin(plan, fault);
      return told(faultProblems(fault, { blocker: blocker.get(), isTraced, devices: tunnelsOf(plan) }), peers);
    },
    takeEvents() {
      const taken = events;
      events = [];
      return taken;
    },
    stop: () => ended.abort(),
  };
};
