import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { nodeCommand } from '@unbounded/config/node-command';
import { beforeAll, expect, test } from 'vitest';
import type { Report, Shot } from './senders.scenario.ts';

/** A network of its own, and folders of its own over those of the machine. */
const ENTER = `set -e
for folder in /run /var/lib /etc/cni /opt/cni; do [ ! -d $folder ] || mount -t tmpfs tmpfs $folder; done
mount -t sysfs sysfs /sys
exec "$0" "$@"`;

const OWN = { 4: '100.65.31.9', 6: 'fd64:65:31::9' } as const;
const FAR = { 4: '100.66.7.7', 6: 'fd64:66:7::7' } as const;
const G1 = { 4: '100.65.20.9', 6: 'fd64:65:20::9' } as const;
const HOME = { 4: '100.65.30.9', 6: 'fd64:65:30::9' } as const;
const FAMILIES = [4, 6] as const;

type Case = readonly [what: string, shot: Omit<Shot, 'protocol' | 'underlay'>];

const good = (family: 4 | 6): Case[] => [
  [`IPv${family}: a peer's own pod`, { from: 'x1', source: OWN[family] }],
  [`IPv${family}: what a gateway brings`, { from: 'g1', source: FAR[family] }],
  [`IPv${family}: the same by the other gateway`, { from: 'g9', source: FAR[family] }],
  [`IPv${family}: a pod of a gateway, as its probes`, { from: 'g1', source: G1[family] }],
  [`IPv${family}: in fragments`, { from: 'x1', source: OWN[family], shape: 'fragmented' }],
];
const bad = (family: 4 | 6): Case[] => [
  [`IPv${family}: another peer's pod`, { from: 'x1', source: G1[family] }],
  [`IPv${family}: a pod behind the gateways, from a worker`, { from: 'x1', source: FAR[family] }],
  [`IPv${family}: a worker's pod, from a gateway that brings a wide block`, { from: 'g1', source: OWN[family] }],
  [`IPv${family}: the node's own pod`, { from: 'g1', source: HOME[family] }],
  [`IPv${family}: a stranger of the LAN with a pod's address`, { from: 'stranger', source: OWN[family] }],
  [`IPv${family}: forged, in fragments`, { from: 'x1', source: G1[family], shape: 'fragmented' }],
];
const addressless: Case[] = [
  ['a link-local source', { from: 'x1', source: 'fe80::9' }],
  ['an address of the LAN', { from: 'x1', source: '10.1.0.31' }],
  ['an address of nobody', { from: 'x1', source: '192.0.2.9' }],
];

const over = (protocol: Shot['protocol'], underlay: 4 | 6, cases: readonly Case[]) =>
  cases.map(([what, shot]) => ({
    what: `${protocol} over IPv${underlay}, ${what}`,
    shot: { ...shot, protocol, underlay },
  }));

const FINE = [
  ...FAMILIES.flatMap((underlay) => over('VXLAN', underlay, FAMILIES.flatMap(good))),
  ...FAMILIES.flatMap((underlay) => over('GENEVE', underlay, FAMILIES.flatMap(good))),
  ...over('IPIP', 4, good(4)),
];
const FORGED = [
  ...FAMILIES.flatMap((underlay) => over('VXLAN', underlay, [...FAMILIES.flatMap(bad), ...addressless])),
  ...over('VXLAN', 4, [
    ['no IP packet', { from: 'x1', source: OWN[4], shape: 'ARP' }],
    ['another type than the packet', { from: 'x1', source: OWN[4], shape: 'the wrong type' }],
  ]),
  ...FAMILIES.flatMap((underlay) =>
    over('GENEVE', underlay, [...FAMILIES.flatMap(bad).filter(([, { from }]) => from !== 'stranger'), ...addressless]),
  ),
  ...over('GENEVE', 4, [
    ['an option, which would hide the source', { from: 'x1', source: OWN[4], shape: 'an option' }],
  ]),
  ...over('IPIP', 4, [...bad(4).filter(([, { from }]) => from !== 'stranger'), ...addressless.slice(1)]),
];
/** Not for a device of ours: that of somebody else may want it. */
const FOREIGN = [
  ...over('GENEVE', 4, [
    ['of a stranger', { from: 'stranger', source: OWN[4] }],
    ['another network', { from: 'x1', source: G1[4], shape: 'another VNI' }],
  ]),
  ...over('IPIP', 4, [['of a stranger', { from: 'stranger', source: OWN[4] }]]),
];

let report: Report;
let outcomes: Map<string, string>;
beforeAll(() => {
  const all = [...FINE, ...FORGED, ...FOREIGN].sort((a, b) => {
    const [x, y] = [a, b].map(({ shot }) => `${shot.protocol} ${shot.underlay}`);
    return x! < y! ? -1 : x! > y! ? 1 : 0;
  });
  const scenario = join(import.meta.dirname, 'senders.scenario.ts');
  const argv = ['--net', '--mount', '--propagation', 'private', 'sh', '-c', ENTER, ...nodeCommand, scenario];
  const input = JSON.stringify(all.map(({ shot }) => shot));
  const printed = execFileSync('unshare', argv, { encoding: 'utf8', input, maxBuffer: 64 << 20 });
  report = JSON.parse(printed.trimEnd().split('\n').at(-1)!) as Report;
  outcomes = new Map(all.map(({ what }, index) => [what, report.outcomes[index]!]));
});

test.each(FINE)('$what: is taken', ({ what, shot }) => {
  expect(outcomes.get(what)).toBe(report.delivering.includes(shot.protocol) ? 'arrived' : 'passed');
});

test.each(FORGED)('$what: is dropped and counted', ({ what }) => {
  expect(outcomes.get(what)).toBe('dropped');
});

test.each(FOREIGN)('$what: is left to whom it is for', ({ what }) => {
  expect(outcomes.get(what)).toBe('passed');
});

test('a peer’s own device brings segments of 64 KB, and packets in fragments', () => {
  expect(report.bulkBytes).toBe(8 << 20);
  expect(report.largePings).toBe(3);
});

test('the check is, in nft’s words, a pair of an outer and an inner source', () => {
  expect(report.listing).toContain('type filter hook input priority mangle; policy accept;');
  expect(report.listing).toMatch(/udp dport 4789 goto vxlan/);
  expect(report.listing).toMatch(/@th,224,16 0x800 ip saddr \. @th,336,32 @senders_ip_ip(_[bc])? return/);
  expect(report.listing).toMatch(/@th,224,16 0x86dd ip saddr \. @th,304,128 @senders_ip_ip6(_[bc])? return/);
  expect(report.listing).toMatch(/10\.1\.0\.31 \. 100\.65\.31\.0\/24/);
});

test('this kernel has the devices of VXLAN at least', () => {
  expect(report.delivering).toContain('VXLAN');
});

test('the plan is applied without a problem, and not written again', () => {
  expect(report.problems).toEqual([]);
  expect(report.secondWrote).toEqual([]);
});

test('tunnel packets leave from the address by which peers know the node, not from the one that the kernel prefers', () => {
  const kinds = ['vxlan4', 'vxlan6', 'geneve4', 'geneve6', ...(report.delivering.includes('IPIP') ? ['ipip4'] : [])];
  expect(Object.keys(report.outerSources).sort()).toEqual(kinds.sort());
  for (const { own, other } of Object.values(report.outerSources)) {
    expect(own).toBeGreaterThan(0);
    expect(other).toBe(0);
  }
});
