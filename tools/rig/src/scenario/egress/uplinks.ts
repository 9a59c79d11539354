import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { containsAddress, parseAddress, parsePrefix } from '@unbounded/ip';
import { partnerIps } from '../../features/partner/layout.ts';
import { type LabLayout, type LabNode, namespaceOf } from '../../layout/layout.ts';
import { inWords } from '../cleartext.ts';
import { isNeighborDiscovery, type Packet, parsePcap } from '../pcap.ts';
import { startTcpdump } from '../scenario.ts';
import type { Selected } from './rule.ts';

/** What the uplinks of all nodes carry while pods talk to the partner. */

export interface Carried {
  /** Packets to the partner with the source that they are to have, by node. */
  readonly proper: ReadonlyMap<string, number>;
  /** What no uplink may carry: "NODE DEVICE: SOURCE > DESTINATION …", each once. */
  readonly improper: readonly string[];
}

/** Headers alone: a stream is no more than that to the disk. */
const SNAPLEN = '128';
/** tcpdump, when it is stopped, has not yet been given the packets of the last moments. */
const LAST_PACKETS_MS = 1000;

const uplinksOf = ({ external }: LabNode): string[] => (external?.by === 'interface' ? ['eth0', 'eth1'] : ['eth0']);

const [ICMP, ICMPV6] = [1, 58];
const [UNREACHABLE, TIME_EXCEEDED, PARAMETER] = [3, 11, 12];
const [FIRST_ICMPV6_ECHO, ICMP_AT, ICMPV6_AT] = [128, 34, 54];

/** Routers send errors about answers of the partner with addresses of their own; without options, as the lab's packets are. */
const isIcmpError = ({ protocol, frame }: Packet): boolean => {
  if (protocol === ICMP) return [UNREACHABLE, TIME_EXCEEDED, PARAMETER].includes(frame[ICMP_AT]!);
  return protocol === ICMPV6 && frame[ICMPV6_AT]! < FIRST_ICMPV6_ECHO;
};

/** What packets on an uplink are. */
export interface Judge {
  /** What tcpdump is to write down: outer headers alone count. */
  readonly filter: string;
  /** Undefined: nothing of interest. */
  readonly verdictOf: (packet: Packet) => 'proper' | 'improper' | undefined;
}

/** Selected pods alone talk to the partner, with these addresses. */
export const selectedAlone = (layout: LabLayout, { addresses, pods }: Selected): Judge => ({
  filter: [...partnerIps(layout), ...pods.flatMap(({ ips }) => ips)].map((ip) => `host ${ip}`).join(' or '),
  verdictOf(packet) {
    const { source = '', destination = '' } = packet;
    if (pods.some(({ ips }) => ips.includes(source))) return 'improper';
    if (addresses.includes(source)) return 'proper';
    const isOther = isIcmpError(packet) || isNeighborDiscovery(packet);
    return partnerIps(layout).includes(destination) && !isOther ? 'improper' : undefined;
  },
});

const holds = (blocks: readonly string[]): ((text: string) => boolean) => {
  const prefixes = blocks.map(parsePrefix);
  return (text) => {
    const address = parseAddress(text);
    return prefixes.some((prefix) => prefix.family === address.family && containsAddress(prefix, address));
  };
};

export interface Ports {
  readonly selected: readonly number[];
  readonly others: readonly number[];
}

/** Selected pods talk to some ports of the partner, other pods to other ones: who has which address comes and goes. */
export const selectedByPort = (layout: LabLayout, blocks: readonly string[], ports: Ports): Judge => {
  const isEgress = holds(blocks);
  const nets = [...partnerIps(layout).map((ip) => `host ${ip}`), ...blocks.map((block) => `net ${block}`)];
  return {
    filter: nets.join(' or '),
    verdictOf(packet) {
      const { source, destination, destinationPort = 0 } = packet;
      if (source === undefined || !partnerIps(layout).includes(destination ?? '')) return undefined;
      if (ports.selected.includes(destinationPort)) return isEgress(source) ? 'proper' : 'improper';
      if (ports.others.includes(destinationPort)) return isEgress(source) ? 'improper' : 'proper';
      return undefined;
    },
  };
};

interface Uplink {
  readonly node: string;
  readonly device: string;
  readonly file: string;
}

const look = (judge: Judge, uplinks: readonly Uplink[]): Carried => {
  const proper = new Map<string, number>();
  const improper = new Set<string>();
  for (const { node, device, file } of uplinks) {
    for (const packet of parsePcap(readFileSync(file))) {
      const verdict = judge.verdictOf(packet);
      if (verdict === 'improper') improper.add(`${node} ${device}: ${inWords(packet)}`);
      else if (verdict === 'proper') proper.set(node, (proper.get(node) ?? 0) + 1);
    }
  }
  return { proper, improper: [...improper] };
};

/** Captures on every uplink of every node while something happens. */
export const uplinksDuring = async (layout: LabLayout, judge: Judge, act: () => Promise<void>): Promise<Carried> => {
  const folder = mkdtempSync(join(tmpdir(), 'uplinks-'));
  const uplinks = layout.nodes.flatMap((node) =>
    uplinksOf(node).map((device) => ({ node: node.name, device, file: join(folder, `${node.name}-${device}.pcap`) })),
  );
  try {
    const stops = await Promise.all(
      uplinks.map(({ node, device, file }) =>
        startTcpdump(namespaceOf(node), ['-i', device, '-w', file, '-s', SNAPLEN, judge.filter]),
      ),
    );
    try {
      await act();
      await delay(LAST_PACKETS_MS);
    } finally {
      await Promise.all(stops.map((stop) => stop()));
    }
    return look(judge, uplinks);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};
