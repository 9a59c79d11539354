import { setTimeout as sleep } from 'node:timers/promises';
import { innerMac } from '@unbounded/bpf-maps';
import { DEVICES, PORTS } from '@unbounded/config/ownership';
import { until } from '@unbounded/testing';
import { serveTcp, type TcpServer } from '@unbounded/testing/tcp-flows';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import {
  ADDRESSES,
  addressOf,
  type EgressNetwork,
  FAMILIES,
  type Host,
  openEgressNetwork,
  type Place,
  PORT,
} from './egress-network.testdata.ts';
import { applyPlan, giveUpAddresses, holdAddresses } from './egress-bed.testdata.ts';
import { owns, planFor, pods, route } from './egress-plans.testdata.ts';
import { datagram, vxlan } from '../data-path/netlink/packets.testdata.ts';
import type { EgressPlan, PodRoute } from './plan/egress-plan.ts';
import { liveSet } from './plan/tables.plan.ts';

/** Packets of a selected pod, from the first node to the partner and back, through the real tables, routes and devices of both nodes. */

let network: EgressNetwork;
const servers: TcpServer[] = [];

const apply = (node: 'worker' | 'gateway', plan: EgressPlan): Promise<void> => applyPlan(network, node, plan);
const hold = (node: 'worker' | 'gateway', ...hosts: readonly ('first' | 'second')[]): Promise<void> =>
  holdAddresses(network, node, hosts);
const giveUp = (node: 'worker' | 'gateway', ...hosts: readonly ('first' | 'second')[]): void =>
  giveUpAddresses(network, node, hosts);
const asked = (from: 'pod' | 'other' | 'gatewayPod', to: Host): Promise<string[]> =>
  Promise.all(FAMILIES.map((family) => network.ask(from, addressOf(to, family))));
/** A packet of the tunnel to the gateway, from this place and with these sources. */
const forge = (from: 'worker' | 'partner', outer: string, inner: string): void => {
  const partner = addressOf('partner', inner.includes(':') ? 6 : 4);
  const bytes = vxlan(datagram(inner, partner, new Uint8Array(20)), { mac: innerMac(addressOf('gatewayOverlay', 4)) });
  bytes[6] = 2; // the VNI
  network.input(
    from,
    ['perl', '-e', FORGE, outer, addressOf('gatewayOverlay', 4), String(PORTS.egress)],
    Buffer.from(bytes).toString('hex'),
  );
};
/** Sends a datagram of the hexadecimal bytes of its input from an address that need not be its own. */
const FORGE = `use Socket;
socket(my $s, AF_INET, SOCK_DGRAM, 17) or die $!;
setsockopt($s, 0, 19, 1) or die $!; # IP_TRANSPARENT
bind($s, pack_sockaddr_in(40000, inet_aton($ARGV[0]))) or die $!;
send($s, pack("H*", <STDIN>), 0, pack_sockaddr_in($ARGV[2], inet_aton($ARGV[1]))) or $!{EPERM} or die $!;`;
/** An echo reply of ICMP, to an address. */
const ECHO_REPLY = `use Socket;
socket(my $s, AF_INET, SOCK_RAW, 1) or die $!;
send($s, pack("C2n3", 0, 0, 0xfffd, 1, 1), 0, pack_sockaddr_in(0, inet_aton($ARGV[0]))) or die $!;`;

beforeAll(async () => {
  network = await openEgressNetwork();
  for (const place of ['partner', 'gatewayPod'] as const)
    servers.push(await serveTcp(['nsenter', `--net=${network.ns[place].path}`], PORT));
}, 30_000);
afterAll(async () => {
  for (const server of servers) server.end();
  await network.close();
});
beforeEach(async () => {
  giveUp('worker', 'first', 'second');
  giveUp('gateway', 'first', 'second');
  network.run('partner', 'ip', 'neigh', 'flush', 'dev', 'lan'); // it may have the address of another owner
  for (const node of ['worker', 'gateway'] as const) {
    await apply(node, planFor(node));
    network.sources(node);
  }
});

const all = (...pairs: (readonly string[])[]): string[] => pairs.flat().sort();
const dropsOf = (node: 'worker' | 'gateway', family?: 'inet' | 'ip' | 'ip6') => network.nodes[node].drops(family);
/**
 * The partner gives up what it has answered and what nobody confirmed. Answers that it repeats seconds later would reach the pod in another
 * test, which refuses them, by packets that leave.
 */
const endHandshakes = async (): Promise<void> => {
  const repeat = (times: number): unknown =>
    network.run('partner', 'sysctl', '-qw', `net.ipv4.tcp_synack_retries=${times}`);
  repeat(0);
  await until('no handshake is open', () => network.run('partner', 'ss', '-Htn', 'state', 'syn-recv') === '');
  repeat(5);
};
/** Where none is expected: it takes the whole time. */
const answered = (from: Place, to: Host): Promise<string[]> =>
  Promise.all(FAMILIES.map((family) => network.ask(from, addressOf(to, family), 0.3)));
const NONE = ['none', 'none'];

const remote = [route('first', 'gateway')];
const steer = (routes: readonly PodRoute[]): Promise<void> =>
  apply('worker', planFor('worker', { steered: [pods('pod', 'worker', routes)] }));
const serve = async (routes: readonly PodRoute[], ...hosts: readonly ('first' | 'second')[]): Promise<void> => {
  await apply(
    'gateway',
    planFor('gateway', { translated: [pods('pod', 'worker', routes)], addresses: owns(...hosts) }),
  );
  await hold('gateway', ...hosts);
};
const nft = (node: 'worker' | 'gateway', ...command: string[]): void => void network.run(node, 'nft', ...command);

describe('an owner on another node', () => {
  beforeEach(async () => {
    await steer(remote);
    await serve(remote, 'first');
  });

  test('the partner sees the egress address of the selected pod, and the node of another', async () => {
    const marked = [network.marked('worker'), network.marked('gateway')];
    expect(await asked('pod', 'partner')).toEqual(ADDRESSES.first);
    expect(await asked('other', 'partner')).toEqual(ADDRESSES.worker);
    expect(network.sources('worker')).toEqual(all(ADDRESSES.worker));
    expect(network.sources('gateway')).toEqual(all(ADDRESSES.first));
    expect([network.marked('worker'), network.marked('gateway')]).toEqual(marked);
  });

  test('pods of the cluster see the pod itself', async () => {
    expect(await asked('pod', 'gatewayPod')).toEqual(ADDRESSES.pod);
  });

  test.each(FAMILIES)(
    'echoes and fragments of IPv%d pass, and the node of the pod says what does not fit',
    (family) => {
      const partner = addressOf('partner', family);
      network.output('pod', 'ping', '-qc3', '-i0.1', '-w1', '-s', '3000', partner); // IPv6: both ends learn the MTU
      for (const bytes of ['56', '3000']) network.run('pod', 'ping', '-qc2', '-i0.1', '-w3', '-s', bytes, partner);
      expect(network.output('pod', 'ping', '-c1', '-w1', '-M', 'do', '-s', '1390', partner)).toMatch(/mtu ?= ?1400/i);
    },
  );

  test.each(FAMILIES)('a pod hears of every router of IPv%d on the way', (family) => {
    for (const hops of ['1', '2'])
      expect(network.output('pod', 'ping', '-c1', '-w1', '-t', hops, addressOf('partner', family))).toMatch(
        /Time to live exceeded|Hop limit/,
      );
  });

  test.each(['worker', 'gateway'] as const)('without nftables at the %s nothing leaves', async (node) => {
    nft(node, 'delete', 'table', 'inet', 'unbounded_egress');
    expect(await answered('pod', 'partner')).toEqual(NONE);
    expect(network.sources('worker')).toEqual([]);
    expect(network.sources('gateway')).toEqual([]);
    expect(await asked('pod', 'gatewayPod')).toEqual(ADDRESSES.pod);
  });

  test.each([
    ['rules', 'ip rule flush protocol 118; ip -6 rule flush protocol 118'],
    ['routes', 'ip route flush table all protocol 118; ip -6 route flush table all protocol 118'],
    ['tunnel', 'ip link del egress0'],
  ])('without the %s of either node nothing leaves with another source', async (_, command) => {
    network.run('worker', 'sh', '-c', command);
    expect(await answered('pod', 'partner')).toEqual(NONE);
    expect(network.sources('worker')).toEqual([]);
    expect(network.sources('gateway')).toEqual([]);
    expect((await dropsOf('worker'))['egress_wrong_way']).toBeGreaterThanOrEqual(2);
  });

  test('without the routes of the owner nothing leaves with another source', async () => {
    network.run(
      'gateway',
      'sh',
      '-c',
      'ip route flush table all protocol 118; ip -6 route flush table all protocol 118',
    );
    expect(await answered('pod', 'partner')).toEqual(NONE);
    expect(network.sources('worker')).toEqual([]);
    expect(network.sources('gateway')).toEqual(all(ADDRESSES.first));
    await endHandshakes();
  });

  test('what the fence does not hold any more leaves no more', async () => {
    for (const [index, family] of (['ip', 'ip6'] as const).entries())
      await network.nodes.gateway.table(family).changeElements({
        remove: [{ ...liveSet(family), elements: [ADDRESSES.first[index]!] }],
      });
    network.sources('gateway'); // until then connections of before may have ended, with packets of their own
    expect(await answered('pod', 'partner')).toEqual(NONE);
    expect(network.sources('gateway')).toEqual([]);
    expect(Object.keys({ ...(await dropsOf('gateway', 'ip')), ...(await dropsOf('gateway', 'ip6')) })).toEqual([
      'egress_not_owned',
    ]);
  });

  test('nobody reaches the owner at the egress address, nor anything behind it', async () => {
    const server = await serveTcp(['nsenter', `--net=${network.ns.gateway.path}`], PORT);
    expect(await Promise.all(FAMILIES.map((family) => network.ask('partner', addressOf('gateway', family))))).toEqual(
      ADDRESSES.partner,
    );
    expect(await answered('partner', 'first')).toEqual(NONE);
    expect(await answered('pod', 'first')).toEqual(NONE);
    expect(await answered('other', 'first')).toEqual(NONE);
    server.end();
    expect(await dropsOf('gateway')).toMatchObject({ egress_unsolicited: 4, stray_egress: 2 });
  });

  test('the owner itself does not use the egress address', async () => {
    for (const family of FAMILIES) {
      const own = addressOf('first', family);
      network.output('gateway', 'ping', '-qc1', '-w1', '-I', own, addressOf('partner', family));
    }
    expect(network.sources('gateway')).toEqual([]);
    expect((await dropsOf('gateway'))['egress_wrong_source']).toBe(2);
  });

  test('out of the tunnel comes what the node of a pod sends for that pod, and nothing else', async () => {
    const attempts: readonly [Host, Host][] = [
      ['workerOverlay', 'other'], // a pod that is not selected
      ['workerOverlay', 'gatewayPod'], // of another node
      ['pod', 'pod'], // of the pod itself
      ['worker', 'pod'], // the node by another address
    ];
    for (const family of FAMILIES) {
      for (const [outer, inner] of attempts) forge('worker', addressOf(outer, 4), addressOf(inner, family));
      forge('partner', addressOf('workerOverlay', 4), addressOf('pod', family));
    }
    expect(network.sources('gateway')).toEqual([]);
    expect((await dropsOf('gateway'))['forged_egress_tunnel']).toBeGreaterThanOrEqual(4);
    for (const family of FAMILIES) forge('worker', addressOf('workerOverlay', 4), addressOf('pod', family));
    expect(network.sources('gateway')).toEqual(all(ADDRESSES.first));
  });

  test('a connection from before the rule ends, and leaves with no other source', async () => {
    await steer([route('first', 'gateway', { destinations: ['192.0.2.77/32'] })]);
    for (const family of FAMILIES) await network.send('pod', addressOf('partner', family), 5001);
    expect(network.sources('worker')).toEqual(all(ADDRESSES.worker));
    await steer(remote);
    for (const family of FAMILIES) await network.send('pod', addressOf('partner', family), 5001);
    expect(network.sources('worker')).toEqual([]);
    expect((await dropsOf('worker'))['predates_rule']).toBe(2);
    for (const family of FAMILIES) await network.send('pod', addressOf('partner', family), 5002);
    expect(network.sources('worker')).toEqual([]);
    expect(network.sources('gateway')).toEqual(all(ADDRESSES.first));
  });

  test('a connection from before the end of the rule ends, and its pod is not seen', async () => {
    for (const family of FAMILIES) await network.send('pod', addressOf('partner', family), 5003);
    expect(network.sources('gateway')).toEqual(all(ADDRESSES.first));
    await apply('worker', planFor('worker'));
    for (const family of FAMILIES) await network.send('pod', addressOf('partner', family), 5003);
    expect(network.sources('worker')).toEqual([]);
    expect((await dropsOf('worker'))['egress_wrong_source']).toBe(2);
    expect(await asked('pod', 'partner')).toEqual(ADDRESSES.worker);
  });

  test('with another address of the same owner a connection ends, and new ones have that address', async () => {
    for (const family of FAMILIES) await network.send('pod', addressOf('partner', family), 5004);
    expect(network.sources('gateway')).toEqual(all(ADDRESSES.first));
    const routes = [route('second', 'gateway')];
    await steer(routes);
    await serve(routes, 'first', 'second');
    for (const family of FAMILIES) await network.send('pod', addressOf('partner', family), 5004);
    expect(network.sources('gateway')).toEqual([]);
    expect((await dropsOf('gateway'))['predates_rule']).toBe(2);
    expect(await asked('pod', 'partner')).toEqual(ADDRESSES.second);
  });

  test('an owner that was not told yet, or no more, lets nothing leave', async () => {
    await apply('gateway', planFor('gateway', { translated: [pods('pod', 'worker', remote)] }));
    expect(await answered('pod', 'partner')).toEqual(NONE);
    expect(network.sources('gateway')).toEqual([]);
    await apply('gateway', planFor('gateway', { addresses: owns('first') }));
    expect(await answered('pod', 'partner')).toEqual(NONE);
    expect(network.sources('gateway')).toEqual([]);
  });
});

test('nodes with IPv6 alone in the overlay carry IPv6', async () => {
  const own = (node: 'worker' | 'gateway', more: Partial<EgressPlan>): EgressPlan => {
    const plan = planFor(node, more);
    const onlyV6 = (addresses: readonly string[]): string[] => addresses.filter((address) => address.includes(':'));
    return {
      ...plan,
      overlayAddresses: onlyV6(plan.overlayAddresses),
      peers: plan.peers.map((peer) => ({ ...peer, overlayAddresses: onlyV6(peer.overlayAddresses) })),
    };
  };
  await apply('worker', own('worker', { steered: [pods('pod', 'worker', remote)] }));
  await apply('gateway', own('gateway', { translated: [pods('pod', 'worker', remote)], addresses: owns('first') }));
  await hold('gateway', 'first');
  expect(await network.ask('pod', addressOf('partner', 6))).toBe(addressOf('first', 6));
  expect(await network.ask('pod', addressOf('partner', 4), 0.3)).toBe('none'); // there is no such pod on such nodes
});

describe('an owner on the node of the pod', () => {
  const own = [route('first', 'worker')];
  beforeEach(async () => {
    await apply('worker', planFor('worker', { steered: [pods('pod', 'worker', own)], addresses: owns('first') }));
    await hold('worker', 'first');
  });

  test('the partner sees the egress address of the selected pod alone', async () => {
    expect(await asked('pod', 'partner')).toEqual(ADDRESSES.first);
    expect(await asked('other', 'partner')).toEqual(ADDRESSES.worker);
    expect(network.sources('worker')).toEqual(all(ADDRESSES.first, ADDRESSES.worker));
    expect(network.sources('gateway')).toEqual([]);
  });

  test.each([
    ['nftables', 'nft delete table inet unbounded_egress'],
    ['the address', 'ip addr del 10.1.0.200/32 dev eth0; ip addr del fd00:1::200/128 dev eth0'],
  ])('without %s nothing leaves with another source', async (what, command) => {
    network.run('worker', 'sh', '-c', command);
    for (const family of FAMILIES) await network.ask('pod', addressOf('partner', family), 0.5);
    expect(network.sources('worker')).toEqual(what === 'nftables' ? [] : all(ADDRESSES.first));
  });
});

describe('routes of a pod', () => {
  const here = async (...routes: readonly PodRoute[]): Promise<void> => {
    const addresses = owns('first', 'second');
    await apply('worker', planFor('worker', { steered: [pods('pod', 'worker', routes)], addresses }));
    await hold('worker', 'first', 'second');
  };
  const ELSEWHERE = ['198.51.100.0/24', '2001:db8:51::/64'];

  test('the first one whose destinations hold the packet counts', async () => {
    await here(route('first', 'worker', { destinations: ELSEWHERE }), route('second', 'worker'));
    expect(await asked('pod', 'elsewhere')).toEqual(ADDRESSES.first);
    expect(await asked('pod', 'partner')).toEqual(ADDRESSES.second);
  });

  test('exceptions are left to the next one, and to nobody when there is none', async () => {
    await here(route('first', 'worker', { except: ELSEWHERE }), route('second', 'worker', { destinations: ELSEWHERE }));
    expect(await asked('pod', 'elsewhere')).toEqual(ADDRESSES.second);
    await here(route('first', 'worker', { except: ELSEWHERE }));
    expect(await asked('pod', 'elsewhere')).toEqual(ADDRESSES.worker);
    expect(await asked('pod', 'partner')).toEqual(ADDRESSES.first);
  });

  test('without an owner packets are dropped, or leave with the address of the node where the rule says so', async () => {
    await here(route(undefined, 'worker'));
    expect(await answered('pod', 'partner')).toEqual(NONE);
    expect(network.sources('worker')).toEqual([]);
    expect(await asked('pod', 'gatewayPod')).toEqual(ADDRESSES.pod);
    await here(route(undefined, 'worker', { unavailable: 'pass' }));
    expect(await asked('pod', 'partner')).toEqual(ADDRESSES.worker);
  });

  test('an answer that nobody asked for is of no connection, and does not leave', async () => {
    await here(route('first', 'worker'));
    network.run('pod', 'perl', '-e', ECHO_REPLY, addressOf('partner', 4));
    expect(network.sources('worker')).toEqual([]);
    expect((await dropsOf('worker'))['egress_invalid']).toBe(1);
  });

  test('a family without an address is dropped beside the other', async () => {
    const [v4] = route('first', 'worker').egress;
    await here(route('first', 'worker', { egress: [v4!] }));
    expect(await network.ask('pod', addressOf('partner', 4))).toBe(addressOf('first', 4));
    expect(await network.ask('pod', addressOf('partner', 6), 0.5)).toBe('none');
    expect(network.sources('worker')).toEqual(all([addressOf('first', 4)]));
    expect((await dropsOf('worker'))['no_owner']).toBeGreaterThanOrEqual(1);
  });
});

test('at rest nothing is written', async () => {
  await steer(remote);
  const seen: string[] = [];
  const tunnel = (await network.nodes.worker.net.links.get(DEVICES.egress))!;
  const monitor = network.nodes.worker.net.monitor(['link', 'route', 'rule', 'neighbour', 'address'], {
    onEvent: ({ subject, value }) => {
      if (subject !== 'neighbour' || value.link === tunnel.index) seen.push(subject);
    },
    onResync: () => void seen.push('resync'),
  });
  const watch = network.nodes.worker.nft.monitor('inet', 'unbounded_egress', { onChange: () => void seen.push('nft') });
  for (let times = 0; times < 3; times++) await steer(remote);
  await sleep(100);
  monitor.close();
  watch.close();
  expect(seen).toEqual([]);
});
