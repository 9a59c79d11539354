import type { LabLayout } from '../layout/layout.ts';
import { run } from '../machine/command.ts';
import { inNode } from '../node/node.ts';
import { linkCounters } from './scenario.ts';

/** Where kernels have dropped packets: what did it, where a flow lost some. */

/** So far, by place and counter. */
export type Drops = ReadonlyMap<string, number>;

/** A name, and what enters the network. */
export type Place = readonly [name: string, enter: readonly string[]];

export const placesOf = ({ nodes }: Pick<LabLayout, 'nodes'>): Place[] => nodes.map(({ name }) => [name, inNode(name)]);

const ofDevices = (enter: readonly string[]): [string, number][] =>
  linkCounters(enter).map(({ ifname, stats64: { rx, tx } }) => [ifname, rx.dropped + tx.dropped]);

/** Counters of the kernel (RFC 4293, RFC 4113, and Linux's own of full buffers and wrong checksums) of packets that went no further. */
const DROPS =
  /^(Ip|Udp|Ip6|Udp6)(InDiscards|OutDiscards|OutNoRoutes|ReasmFails|RcvbufErrors|SndbufErrors|MemErrors|InCsumErrors)$/;

/** nstat(8): all, also those at zero, since the start of the network and not since its last call. */
const ofProtocols = (enter: readonly string[]): [string, number][] => {
  const { kernel } = JSON.parse(run([...enter, 'nstat', '--json', '--zeros', '--ignore', '--noupdate'])) as {
    readonly kernel: Readonly<Record<string, number>>;
  };
  return Object.entries(kernel).filter(([name]) => DROPS.test(name));
};

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
