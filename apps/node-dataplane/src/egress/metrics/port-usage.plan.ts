import type { Answers } from '@unbounded/netlink';
import type { Problem } from '@unbounded/topology';
import { TCP, UDP } from '../../kernel/protocol-numbers.ts';

/**
 * Source ports of egress addresses. Connections to one destination (protocol, address, port) each need another port of the address, since
 * answers are told apart by nothing else: who has none left cannot open a connection there, while other destinations are reached as ever.
 */

/**
 * The kernel keeps the port of the pod where it is free, and takes another one of 1024 to 65535 otherwise (nf_nat_l4proto_unique_tuple; those
 * below 1024 only for a pod's port below 1024). It looks at some 250 of them: of the last ones it may find none.
 */
export const PORTS_OF_ADDRESS = 65_535 - 1024 + 1;

/** Of one address to the destination with most connections. */
export interface PortUsage {
  readonly address: string;
  readonly protocol: number;
  readonly peer: string;
  readonly peerPort: number;
  /** Ports in use. */
  readonly ports: number;
}

/** By address; addresses without connections are not there. Those of protocols without ports do not count. */
export const highestUsages = (counts: ReadonlyMap<Answers, number>): Map<string, PortUsage> => {
  const highest = new Map<string, PortUsage>();
  for (const [answers, ports] of counts) {
    if (answers.peerPort === 0 || ports <= (highest.get(answers.address)?.ports ?? 0)) continue;
    highest.set(answers.address, { ...answers, ports });
  }
  return highest;
};

export const shareOf = ({ ports }: Pick<PortUsage, 'ports'>): number => ports / PORTS_OF_ADDRESS;

/** What is warned of ends when it is this much below the threshold: it does not come and go. */
const CALM_BELOW = 0.9;

/**
 * Addresses of which is warned.
 * @param before of which was warned before
 * @param threshold share of the ports, up to 1
 */
export const exhausting = (
  usages: ReadonlyMap<string, PortUsage>,
  before: ReadonlySet<string>,
  threshold: number,
): Set<string> =>
  new Set(
    [...usages.values()]
      .filter((usage) => shareOf(usage) >= threshold * (before.has(usage.address) ? CALM_BELOW : 1))
      .map(({ address }) => address),
  );

const NAMES: ReadonlyMap<number, string> = new Map([
  [TCP, 'TCP'],
  [UDP, 'UDP'],
]);

const destinationOf = ({ protocol, peer, peerPort }: PortUsage): string =>
  `${NAMES.get(protocol) ?? `protocol ${protocol}`} ${peer.includes(':') ? `[${peer}]` : peer}:${peerPort}`;

/** Rounded down, so that a problem that stands is not written anew with each connection. */
const rounded = (ports: number): number => {
  const step = 10 ** Math.max(0, String(ports).length - 2);
  return Math.floor(ports / step) * step;
};

export const portsExhausting = (usage: PortUsage): Problem => ({
  reason: 'EgressPortsExhausting',
  message: `egress address ${usage.address}: at least ${rounded(usage.ports)} of its ${PORTS_OF_ADDRESS} ports are in use to ${destinationOf(usage)}: without a free one pods open no more connections there: give the rule one address more (addresses or egressips), or let the pods use connections again`,
});
