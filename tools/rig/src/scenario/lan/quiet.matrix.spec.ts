import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { layoutOf, namespaceOf } from '../../layout/layout.ts';
import { run } from '../../machine/command.ts';
import { onNode } from '../../node/node.ts';
import { down } from '../../substrate/down.ts';
import { up } from '../../substrate/up.ts';
import { parsePcap } from '../pcap.ts';
import { startCapture, startTcpdump, tryInPod } from '../scenario.ts';
import { wanTrafficOf } from '../wan-capture.ts';
import { allOnLan, type OnLan } from './place.ts';

/** What nodes and sites exchange while nothing changes on a LAN: frames for known stations, and nothing else. */

const MINUTES = 5;
const MINUTE_MS = 60_000;
const layout = layoutOf({ workers: 1, lan: true });
const work = mkdtempSync(join(tmpdir(), 'unbounded-quiet-'));

beforeAll(async () => {
  await down();
  await up(layout);
}, 300_000);
afterAll(async () => {
  await down();
  rmSync(work, { recursive: true, force: true });
}, 60_000);

/** Of the frame that is inside of SRv6 (next header 143), from the outer IPv6 header on. */
const [FUNCTION, DESTINATION, ETHER_TYPE] = ['ip6[32:2]', 'ip6[40]', 'ip6[52:2]'] as const;
const INNER_ICMPV6 = `${ETHER_TYPE} = 0x86dd and ip6[60] = 58`;
const INNER_ICMPV6_TYPE = 'ip6[94]';
const END_DT2M = 2;
/** A broadcast; ARP; neighbor discovery but for router solicitations, which are multicast; unicast to all nodes (an unknown station). */
const FLOODED_FRAME = [
  'ip6[40:4] = 0xffffffff',
  `${ETHER_TYPE} = 0x0806`,
  `(${INNER_ICMPV6} and ${INNER_ICMPV6_TYPE} >= 134 and ${INNER_ICMPV6_TYPE} <= 137)`,
  `(${FUNCTION} = ${END_DT2M} and ${DESTINATION} & 1 = 0)`,
].join(' or ');
/** ARP and neighbor discovery for the LAN's addresses (192.168.77.0/24, fd77::/64) without SRv6. */
const BARE =
  '(arp and (arp[14:2] = 0xc0a8 or arp[24:2] = 0xc0a8)) or ' +
  '(icmp6 and ip6[40] >= 134 and ip6[40] <= 137 and ip6[48:4] = 0xfd770000)';
const FLOODED = `(ip6 proto 143 and (${FLOODED_FRAME})) or ${BARE}`;

/** What joins a node to others: its own devices and our tunnels, and not what pods hang on. */
const underlays = (node: string): readonly string[] =>
  (JSON.parse(onNode(node, 'ip', '-d', '-j', 'link')) as { ifname: string; linkinfo?: { info_kind?: string } }[])
    .filter(({ ifname, linkinfo }) => /^eth\d/.test(ifname) || !['veth', 'bridge'].includes(linkinfo?.info_kind ?? ''))
    .map(({ ifname }) => ifname)
    .filter((name) => name !== 'lo');

const packetsIn = (file: string, ...filter: readonly string[]): readonly string[] =>
  run(['tcpdump', '-nqr', file, ...filter])
    .split('\n')
    .filter(Boolean);

/** Every pod looks for every other one anew. */
const lookAnew = (all: readonly OnLan[]): void => {
  for (const { pod } of all) tryInPod(pod, 'ip', 'neigh', 'flush', 'dev', 'net1');
  for (const from of all)
    for (const to of all.filter((one) => one !== from))
      for (const ip of [to.ipv4, to.ipv6])
        expect(tryInPod(from.pod, 'ping', '-c1', '-W2', ip), `${from.pod.name} to ${ip}`).toBeDefined();
};

/** What nobody has: addresses that nobody answers for, and a station that there is not. */
const UNUSED = ['192.168.77.254', 'fd77::dead'];
const lookForAbsent = ({ pod }: OnLan): void => {
  const expectNobody = (ip: string): void => expect(tryInPod(pod, 'ping', '-c1', '-W1', ip), ip).toBeUndefined();
  for (const ip of UNUSED) {
    expectNobody(ip);
    tryInPod(pod, ...`ip neigh replace ${ip} lladdr 02:00:00:00:00:99 dev net1 nud reachable`.split(' '));
    expectNobody(ip);
  }
};

test(
  `nodes exchange no ARP, neighbor discovery, broadcast or frame for an unknown station in ${MINUTES} minutes`,
  { timeout: (MINUTES + 3) * MINUTE_MS },
  async () => {
    const all = (await Promise.all(layout.nodes.map(({ name }) => allOnLan(layout, name)))).flat();
    const file = (...words: readonly string[]): string => join(work, `${words.join('-')}.pcap`);
    const places = layout.nodes.flatMap(({ name }) => underlays(name).map((device) => [name, device] as const));
    const captures = [...places, ['wan', 'wan0'] as const].map(([name, device]) =>
      startTcpdump(namespaceOf(name), ['-i', device, '-w', file(name, device), FLOODED]),
    );
    const frames = file('frames');
    const stops = await Promise.all([
      ...captures,
      startTcpdump(namespaceOf('s2-w1'), ['-i', 'vxlan0', '-w', frames, 'ip6 proto 143']),
      startCapture(namespaceOf('wan'), 'wan0', file('wan')),
    ]);
    const end = Date.now() + MINUTES * MINUTE_MS;
    for (let minute = 1; minute <= MINUTES; minute++) {
      lookAnew(all);
      lookForAbsent(all[0]!);
      await delay(Math.max(0, end - (MINUTES - minute) * MINUTE_MS - Date.now()));
    }
    for (const { pod } of all) tryInPod(pod, 'ping', '-c1', '-W1', '-I', 'net1', '224.0.0.1');
    for (const stop of stops) await stop();

    const flooded = places.flatMap(([name, device]) =>
      packetsIn(file(name, device)).map((packet) => `${name} ${device}: ${packet}`),
    );
    expect(flooded).toEqual([]);
    expect(packetsIn(file('wan', 'wan0'))).toEqual([]);
    const { wireGuard, others, inner } = wanTrafficOf(parsePcap(readFileSync(file('wan'))));
    expect(wireGuard).toBeGreaterThan(0);
    expect([...others, ...inner]).toEqual([]);
    // The same offsets find what is there: pings of IPv6, and a multicast by End.DT2M.
    expect(packetsIn(frames, `${INNER_ICMPV6} and ${INNER_ICMPV6_TYPE} = 128`).length).toBeGreaterThan(MINUTES);
    expect(packetsIn(frames, `${FUNCTION} = ${END_DT2M} and ${DESTINATION} & 1 = 1`).length).toBeGreaterThan(0);
  },
);
