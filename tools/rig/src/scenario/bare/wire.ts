import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { hostOf } from '../../layout/addresses.ts';
import { run } from '../../machine/command.ts';
import { type LabLayout, namespaceOf, routerName, WAN } from '../../layout/layout.ts';
import type { Pod } from '../../checks/test-pod.ts';
import { startCapture } from '../scenario.ts';
import { inPod } from '../../substrate/probes.ts';

/** What the wires carry while one pod asks another. */

interface Carried {
  /** Packets that match the filter (pcap-filter(7)). */
  readonly matching: number;
  /** Others of IPv4 or IPv6, but for neighbour discovery and group membership. */
  readonly others: number;
  /** The inner bytes were seen as they are. */
  readonly hasMarker: boolean;
}

type Segment = 'lan' | 'wan';
export type Wire = Readonly<Record<Segment, Carried>>;

const FILTERS = {
  GENEVE: 'udp dst port 6081',
  VXLAN: 'udp dst port 4789',
  IPIP: 'ip proto 4',
  WireGuard: 'udp portrange 51820-65419',
} as const;
export type Carrier = keyof typeof FILTERS;

const MARKER = 'the-inner-bytes-as-they-are';
const DATAGRAMS = { perSecond: '100', seconds: '2' };

const countOf = (file: string, filter: string): number =>
  run(['tcpdump', '-nr', file, filter]).split('\n').filter(Boolean).length;

const carried = (file: string, filter: string): Carried => ({
  matching: countOf(file, filter),
  others: countOf(file, `(ip or ip6) and not icmp6 and not igmp and not ip6 proto 0 and not (${filter})`),
  hasMarker: readFileSync(file).includes(MARKER),
});

/** Sends datagrams and a marker from one pod to the other and says what the first one's LAN and the WAN carried. */
export const lookAtWire = async (
  layout: LabLayout,
  { from, to, carrier }: { readonly from: Pod; readonly to: Pod; readonly carrier: Carrier },
): Promise<Wire> => {
  const folder = mkdtempSync(join(tmpdir(), 'wire-'));
  const files = { lan: join(folder, 'lan.pcap'), wan: join(folder, 'wan.pcap') };
  const stops = await Promise.all([
    startCapture(namespaceOf(routerName(from.site)), 'lan0', files.lan),
    startCapture(namespaceOf(WAN.name), 'wan0', files.wan),
  ]);
  const host = hostOf(to.ip);
  await inPod(layout, from, ['fetch', `http://${host}:8080/${MARKER}`]);
  // Last, for a second: tcpdump, when it is stopped, has not yet been given the packets of the last moments.
  await inPod(layout, from, ['flow', `${host}:9000`, DATAGRAMS.perSecond, DATAGRAMS.seconds]);
  await Promise.all(stops.map((stop) => stop()));
  return { lan: carried(files.lan, FILTERS[carrier]), wan: carried(files.wan, FILTERS[carrier]) };
};
