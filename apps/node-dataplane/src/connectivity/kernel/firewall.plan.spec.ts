import { CONNECTIVITY } from '@unbounded/config/ownership';
import { describe, expect, test } from 'vitest';
import { planFor } from '../../testdata.ts';
import { planFirewall } from './firewall.plan.ts';
import { tableSpec } from '../../kernel/section-table.ts';

const rulesOf = (node: string, chain: string, protocol?: Parameters<typeof planFor>[1]) =>
  planFirewall(planFor(node, protocol)).chains.find(({ name }) => name === chain)!.rules;

const devicesIn = (node: string, set: string, protocol?: Parameters<typeof planFor>[1]) =>
  planFirewall(planFor(node, protocol)).sets!.find(({ name }) => name === set)!.elements;

describe('the table', () => {
  test('is ours alone, and its chains accept by default: others decide after them', () => {
    const content = planFirewall(planFor('w1'));
    expect(JSON.stringify(content)).not.toMatch(/"do":"accept"/);
    const table = tableSpec(CONNECTIVITY, content);
    expect([table.family, table.name]).toEqual(['inet', 'unbounded']);
    expect(new Set(table.chains.map(({ base }) => base?.policy ?? 'accept'))).toEqual(new Set(['accept']));
  });

  test('drops only addresses of the overlay that come in by no tunnel, pods’ tunnel packets to nodes, others’ that come by a wrong way, and what crosses the boundary unlisted, ICMP errors aside', () => {
    const dropping = (plan: Parameters<typeof planFirewall>[0]): string[] =>
      planFirewall(plan).chains.flatMap(({ name, rules }) =>
        rules
          .filter(() => !name.startsWith('quoted_') && !name.startsWith('icmp_errors')) // only errors about tunnels
          .filter(({ expressions }) => expressions.some((part) => 'do' in part && part.do === 'drop'))
          .map(({ expressions }) => {
            const [first, , counter] = [expressions[0]!, ...expressions.slice(-2).toReversed()];
            const counted = counter && 'name' in counter ? counter.name : 'not counted';
            return `${name}: ${'set' in first ? first.set : 'type' in first ? first.type : ''}: ${counted}`;
          }),
      );
    const others = [
      ...['tunnel_ends_ip', 'tunnel_ends_ip6', 'local', 'broadcast', ''].map(
        (what) => `tunnel_packets_to_others: ${what}: injected_tunnel_packet`,
      ),
      ...['tunnel_ends_ip', 'tunnel_ends_ip6', 'local', 'broadcast'].map(
        (what) => `tunnel_packets_to_nodes: ${what}: injected_tunnel_packet`,
      ),
      ...['overlay_ip', 'overlay_ip6'].map((set) => `leaks: ${set}: overlay_leak`),
      'out_of_overlay: : not counted', // ICMP and ICMPv6 to the address of echoes
      'out_of_overlay: : not counted',
      'out_of_overlay: : stray_echo',
      'out_of_overlay: : unlisted_exit',
      ...['overlay_ip', 'overlay_ip6'].map((set) => `from_outside: ${set}: forged_source`),
      'boundary: : stray_echo',
      'entering: : unlisted_entry',
      ...['no_neighbors_ip6', '', '', '', ''].map((what) => `neighbor_discovery: ${what}: overlay_neighbor`),
      ...['ip', 'ip6'].map((family) => `listeners_at_address: internal_addresses_${family}: stray_scrape`),
      'tunnel_packets_way_back: : stray_tunnel_packet',
      'tunnel_packets_at_address: : stray_tunnel_packet',
    ];
    const sources = ['ip', 'ip6'].flatMap((family) => [
      `sources: pods_${family}: forged_source`,
      `sources: plain_${family}: no_route_back`,
    ]);
    expect(dropping(planFor('w1'))).toEqual([...others, ...sources]);
    // The pods' addresses come in by devices that only another plugin knows.
    expect(dropping({ ...planFor('w1'), manageCni: false })).toEqual(others);
  });

  test('masquerades after kube-proxy', () => {
    const chain = planFirewall(planFor('w1')).chains.find(({ name }) => name === 'postrouting');
    expect(chain?.base?.priority).toBeGreaterThan(100);
  });

  test('masquerades pods only, those of others towards exits alone: what the host or somebody else sends keeps its address', () => {
    const masquerading = rulesOf('w1', 'postrouting').filter(({ expressions }) =>
      expressions.some((part) => 'do' in part && part.do === 'masquerade'),
    );
    expect(masquerading.map(({ expressions }) => expressions.filter((part) => 'set' in part))).toEqual(
      ['ip', 'ip6'].flatMap((family) => {
        const toOthers = { match: 'set', field: `${family}.daddr`, op: '!=', set: `own_address_${family}` };
        const from = (set: string) => ({ match: 'set', field: `${family}.saddr`, op: '==', set: `${set}_${family}` });
        const toExits = { match: 'set', field: `${family}.daddr`, op: '==', set: `exits_${family}` };
        return [
          [from('own_pods'), toOthers],
          [from('pods'), toExits, toOthers],
        ];
      }),
    );
  });

  test('what goes into the overlay is never masqueraded: its devices return first', () => {
    const rules = rulesOf('g1', 'postrouting', 'WireGuard');
    const first = rules.findIndex(({ expressions }) =>
      expressions.some((part) => 'do' in part && part.do === 'masquerade'),
    );
    const stays = rules.findIndex(({ comment }) => comment === 'stays in the overlay');
    expect(stays).toBeGreaterThanOrEqual(0);
    expect(stays).toBeLessThan(first);
    expect(devicesIn('g1', 'planned_devices', 'WireGuard')).toEqual([
      'cbr0',
      'unbounded-echo',
      'unbounded0',
      'wg51820',
      'wg51822',
    ]);
  });

  test('segments are clamped on every device that makes packets larger, and not on the bridge', () => {
    expect(rulesOf('w1', 'forward', 'GENEVE')[0]!.expressions).toContainEqual({
      ...{ match: 'device', key: 'oifname', op: '==', set: 'narrow_devices' },
    });
    expect(devicesIn('w1', 'narrow_devices', 'GENEVE')).toEqual(['geneve0', 'unbounded0']);
  });

  test('sets hold the blocks of their family only', () => {
    const plan = planFor('w1');
    const { sets } = planFirewall({
      ...plan,
      masquerade: { sources: ['100.65.0.0/16', 'fd00::/48'], exceptTo: ['fd01::/48'] },
    });
    expect(Object.fromEntries(sets!.map(({ name, elements }) => [name, elements]))).toEqual({
      pods_ip: ['100.65.0.0/16'],
      pods_ip6: ['fd00::/48'],
      external_peers_ip: [],
      external_peers_ip6: [],
      floating_addresses_ip: [],
      floating_addresses_ip6: [],
      internal_addresses_ip: ['10.1.0.30'],
      internal_addresses_ip6: [],
      metrics_ports: ['9998', '9991', '9992', '9993', '9994', '9995', '9990', '9989', '9988', '9999'],
      devices_beside_own: [],
      no_neighbors_ip6: [],
      own_address_ip: [],
      own_address_ip6: ['fd01::/48'],
      plain_ip: [],
      plain_ip6: [],
      also_plain_ip: [],
      also_plain_ip6: [],
      own_pods_ip: ['100.65.30.0/24'],
      own_pods_ip6: [],
      exits_ip: [],
      exits_ip6: [],
      exit_sources_ip: [],
      exit_sources_ip6: [],
      entries_ip: [],
      entries_ip6: [],
      echo_address_ip: ['100.65.30.0'],
      echo_address_ip6: [],
      tunnel_devices: ['unbounded0', 'vxlan0'],
      far_end_ports: ['4789', '6081', '51820', '51821', '51822'],
      far_ends_ip: expect.arrayContaining(['10.1.0.0/24', '10.2.0.0/24', '203.0.113.1/32', '203.0.113.2/32']),
      far_ends_ip6: [],
      own_wireguard_ports: expect.any(Array),
      geneve_sent_to_ip: [],
      geneve_sent_to_ip6: [],
      overlay_devices: ['cbr0', 'unbounded-echo', 'unbounded0', 'vxlan0'],
      planned_devices: ['cbr0', 'unbounded-echo', 'unbounded0', 'vxlan0'],
      narrow_devices: ['unbounded0', 'vxlan0'],
      overlay_ip: ['10.2.0.0/24', '100.65.0.0/16'],
      overlay_ip6: [],
      tunnel_ends_ip: [
        '10.1.0.0/24',
        '10.2.0.0/24',
        '203.0.113.1/32',
        '203.0.113.2/32',
        '224.0.0.0/4',
        '255.255.255.255/32',
      ],
      tunnel_ends_ip6: ['ff00::/8'],
      pod_tunnels_ip: [],
      pod_tunnels_ip6: [],
      tunnel_ports: ['4789', '6081'],
      wireguard_ports: ['51820', '51821', '51822'],
    });
  });
});
