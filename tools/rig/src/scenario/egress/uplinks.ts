import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { partnerIps } from '../../features/partner/layout.ts';
import { type LabLayout, type LabNode, namespaceOf } from '../../layout/layout.ts';
import { inWords } from '../cleartext.ts';
import { type Packet, parsePcap } from '../pcap.ts';
import { startTcpdump } from '../scenario.ts';
import type { Selected } from './rule.ts';

/** What the uplinks of all nodes carry while selected pods alone talk to the partner. */

export interface Carried {
  /** Packets to the partner with an egress address, by node. */
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

const isImproper =
  (layout: LabLayout, { addresses, pods }: Selected): ((packet: Packet) => boolean) =>
  (packet) => {
    const { source = '', destination = '' } = packet;
    if (pods.some(({ ips }) => ips.includes(source))) return true;
    return partnerIps(layout).includes(destination) && !addresses.includes(source) && !isIcmpError(packet);
  };

interface Uplink {
  readonly node: string;
  readonly device: string;
  readonly file: string;
}

/** What tcpdump is to write down: outer headers alone count. */
const filterOf = (layout: LabLayout, { pods }: Selected): string =>
  [...partnerIps(layout), ...pods.flatMap(({ ips }) => ips)].map((ip) => `host ${ip}`).join(' or ');

const look = (layout: LabLayout, selected: Selected, uplinks: readonly Uplink[]): Carried => {
  const proper = new Map<string, number>();
  const improper = new Set<string>();
  const isWrong = isImproper(layout, selected);
  for (const { node, device, file } of uplinks) {
    for (const packet of parsePcap(readFileSync(file))) {
      if (isWrong(packet)) improper.add(`${node} ${device}: ${inWords(packet)}`);
      else if (selected.addresses.includes(packet.source ?? '')) proper.set(node, (proper.get(node) ?? 0) + 1);
    }
  }
  return { proper, improper: [...improper] };
};

/** Captures on every uplink of every node while something happens. */
export const uplinksDuring = async (
  layout: LabLayout,
  selected: Selected,
  act: () => Promise<void>,
): Promise<Carried> => {
  const folder = mkdtempSync(join(tmpdir(), 'uplinks-'));
  const uplinks = layout.nodes.flatMap((node) =>
    uplinksOf(node).map((device) => ({ node: node.name, device, file: join(folder, `${node.name}-${device}.pcap`) })),
  );
  try {
    const stops = await Promise.all(
      uplinks.map(({ node, device, file }) =>
        startTcpdump(namespaceOf(node), ['-i', device, '-w', file, '-s', SNAPLEN, filterOf(layout, selected)]),
      ),
    );
    try {
      await act();
      await delay(LAST_PACKETS_MS);
    } finally {
      await Promise.all(stops.map((stop) => stop()));
    }
    return look(layout, selected, uplinks);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};
