import type { LabLayout } from '../layout/layout.ts';
import { run } from '../machine/command.ts';
import { inNode } from '../node/node.ts';

/** Where kernels have dropped packets: what did it, where a flow lost some. */

/** So far, by place and counter. */
export type Drops = ReadonlyMap<string, number>;

/** A name, and what enters the network. */
export type Place = readonly [name: string, enter: readonly string[]];

export const placesOf = ({ nodes }: Pick<LabLayout, 'nodes'>): Place[] => nodes.map(({ name }) => [name, inNode(name)]);

interface Link {
  readonly ifname: string;
  readonly stats64: Readonly<Record<'rx' | 'tx', { readonly dropped: number }>>;
}

const ofDevices = (enter: readonly string[]): [string, number][] =>
  (JSON.parse(run([...enter, 'ip', '-j', '-s', 'link', 'show'])) as Link[]).map(
    ({ ifname, stats64: { rx, tx } }) => [ifname, rx.dropped + tx.dropped] as const,
  );

/** Counters of the kernel (RFC 4293, RFC 4113, and Linux's own of full buffers) of packets that went no further. */
const DROPS = /^(Ip|Udp|Ip6|Udp6)(InDiscards|OutDiscards|OutNoRoutes|ReasmFails|RcvbufErrors|SndbufErrors|MemErrors)$/;

/** `/proc/net/snmp` has a line of names and a line of values for each protocol, `/proc/net/snmp6` a line for each counter. */
export const countersIn = (snmp: string): [string, number][] => {
  const lines = snmp.split('\n').map((line) => line.trim().split(/:?\s+/));
  return lines.flatMap(([protocol = '', ...words], at) => {
    if (words.length === 1) return [[protocol, Number(words[0])] as [string, number]];
    const values = lines[at + 1] ?? [];
    if (values[0] !== protocol || !Number.isNaN(Number(words[0]))) return [];
    return words.map((name, column): [string, number] => [protocol + name, Number(values[column + 1])]);
  });
};

const ofProtocols = (enter: readonly string[]): [string, number][] =>
  countersIn(run([...enter, 'cat', '/proc/net/snmp', '/proc/net/snmp6'])).filter(([name]) => DROPS.test(name));

export const dropsAt = (places: readonly Place[]): Drops =>
  new Map(
    places.flatMap(([place, enter]) =>
      [...ofDevices(enter), ...ofProtocols(enter)].map(([name, count]) => [`${place} ${name}`, count] as const),
    ),
  );

/** What was dropped since then, in words. */
export const dropsSince = (before: Drops, now: Drops): string =>
  [...now]
    .map(([name, count]) => [name, count - (before.get(name) ?? 0)] as const)
    .filter(([, count]) => count > 0)
    .map(([name, count]) => `${name}: ${count}`)
    .join(', ') || 'nothing';
