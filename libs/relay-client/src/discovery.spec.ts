import fc from 'fast-check';
import { expect, test } from 'vitest';

import {
  externalServices,
  type GatewayLike,
  type ManagedRelay,
  managedServices,
  type NodeLike,
  waysToManaged,
} from './discovery.ts';
import { formatEndpoint } from './endpoint.ts';
import { ManagedDiscovery } from './managed-discovery.ts';
import type { RelayService } from './relay-set.ts';
import { FakeClock } from './test/fake-clock.ts';

interface Addresses {
  readonly externalIPs?: readonly string[];
  readonly internalIPs?: readonly string[];
}
const node = (name: string, ready = true): NodeLike => ({
  metadata: { name },
  status: { conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }] },
});
const gateway = (name: string, addresses: Addresses, ready = true) => ({ name, ...addresses, node: node(name, ready) });
type Host = ReturnType<typeof gateway>;
const hosts = (...gateways: readonly Host[]) => ({ nodes: gateways.map(({ node }) => node), gateways });
const service = (spec: object = {}, ingress: readonly { ip?: string; hostname?: string }[] = []) => ({
  spec: { ports: [{ name: 'relay', port: 3478, nodePort: 30_478 }], ...spec },
  status: { loadBalancer: { ingress } },
});
const cloud = gateway('cloud', { internalIPs: ['10.0.0.1'], externalIPs: ['203.0.113.1'] });
const ways = (relay: ManagedRelay): string[] => waysToManaged(relay).map(formatEndpoint);

test.each<[string, ManagedRelay, string[]]>([
  ['no Service: none', { service: undefined, ...hosts(cloud) }, []],
  ['a Service without ports: none', { service: service({ ports: [] }), ...hosts(cloud) }, []],
  [
    'a ClusterIP Service: none, and no name of the cluster’s',
    { service: service({ ports: [{ port: 3478 }] }), ...hosts(cloud) },
    [],
  ],
  [
    'all kinds, in the documented order; addresses of a balancer before names',
    {
      service: service({ externalIPs: ['198.51.100.1', '198.51.100.2'] }, [
        { hostname: 'lb.example' },
        { ip: '198.51.100.9' },
      ]),
      ...hosts(cloud),
    },
    ['198.51.100.1:3478', '198.51.100.2:3478', '198.51.100.9:3478', 'lb.example:3478', '203.0.113.1:30478'],
  ],
  ['a balancer without an address yet', { service: service({ ports: [{ port: 3478 }] }, [{}]), ...hosts() }, []],
  [
    'a balancer in IPv6',
    { service: service({ ports: [{ port: 443 }] }, [{ ip: '2001:db8::1' }]), ...hosts() },
    ['[2001:db8::1]:443'],
  ],
  [
    'a name of the cluster’s DNS is none, nor is what is no name',
    {
      service: service({ ports: [{ port: 1 }] }, [
        { hostname: 'relay.unbounded.svc.cluster.local' },
        { hostname: 'relay.unbounded.svc' },
        { hostname: 'not a name' },
      ]),
      ...hosts(),
    },
    [],
  ],
  [
    'an internal address of a gateway counts when it is public, any other not',
    {
      service: service(),
      ...hosts(gateway('a', { internalIPs: ['10.0.0.2'] }), gateway('b', { internalIPs: ['203.0.113.2'] })),
    },
    ['203.0.113.2:30478'],
  ],
  [
    'an external address counts whatever it is: somebody has said so',
    { service: service(), ...hosts(gateway('a', { externalIPs: ['10.9.9.9'] })) },
    ['10.9.9.9:30478'],
  ],
  [
    'a node that is no gateway has no way, whatever its kubelet states',
    {
      service: service(),
      nodes: [
        {
          ...node('worker'),
          status: { ...node('worker').status, addresses: [{ type: 'ExternalIP', address: '203.0.113.9' }] },
        },
      ],
      gateways: [],
    },
    [],
  ],
  [
    'gateways that are ready come first',
    {
      service: service(),
      ...hosts(gateway('a', { externalIPs: ['203.0.113.1'] }, false), gateway('b', { externalIPs: ['203.0.113.2'] })),
    },
    ['203.0.113.2:30478', '203.0.113.1:30478'],
  ],
  [
    'of two families IPv4',
    { service: service(), ...hosts(gateway('a', { externalIPs: ['2001:db8::7', '203.0.113.7'] })) },
    ['203.0.113.7:30478'],
  ],
  [
    'the port that is the relay’s, by number, by name, else the first; TCP only',
    {
      service: service({
        ports: [
          { name: 'probe', port: 3478, protocol: 'UDP' },
          { name: 'metrics', port: 9994 },
          { name: 'relay', port: 443 },
        ],
        externalIPs: ['198.51.100.1'],
      }),
      ...hosts(),
      port: 3478,
    },
    ['198.51.100.1:443'],
  ],
])('%s', (_name, relay, expected) => {
  expect(ways(relay)).toEqual(expected);
});

test('of many nodes eight are tried, in an order that differs between those who ask', () => {
  const all = Array.from({ length: 50 }, (_, index) => gateway(`n${index}`, { externalIPs: [`203.0.113.${index}`] }));
  const firsts = Array.from({ length: 20 }, (_, index) =>
    ways({ service: service(), ...hosts(...all), self: `node-${index}` }),
  );
  for (const some of firsts) expect(some).toHaveLength(8);
  expect(new Set(firsts.map(([first]) => first)).size).toBeGreaterThan(8);
  expect(ways({ service: service(), ...hosts(...all.toReversed()), self: 'node-1' })).toEqual(firsts[1]);
});

test('whatever the objects hold, ways are addresses or names from outside, each once', () => {
  const text = fc.option(fc.oneof(fc.ipV4(), fc.ipV6(), fc.domain(), fc.string()), { nil: undefined });
  const ingress = fc.array(fc.record({ ip: text, hostname: text }, { requiredKeys: [] }));
  fc.assert(
    fc.property(fc.array(fc.oneof(fc.ipV4(), fc.string())), ingress, (externalIPs, some) => {
      const defined = some.map((one) =>
        Object.fromEntries(Object.entries(one).filter(([, value]) => value !== undefined)),
      );
      const found = ways({ service: service({ externalIPs }, defined), ...hosts(cloud) });
      expect(new Set(found).size).toBe(found.length);
      expect(found.at(-1)).toBe('203.0.113.1:30478');
      expect(found.join(' ')).not.toMatch(/\.svc|cluster\.local/);
    }),
  );
});

test('external endpoints are a service each; a wrong one is said', () => {
  expect(externalServices(['relay.example:3478', 'relays://[2001:db8::1]', 'relay.example:3478'])).toEqual([
    { name: 'relay.example:3478', ways: [{ host: 'relay.example', port: 3478, isTls: false }] },
    { name: 'relays://[2001:db8::1]', ways: [{ host: '2001:db8::1', port: 3478, isTls: true }] },
  ]);
  expect(() => externalServices(['relay.example:99999'])).toThrow('has port 99999');
});

test('until there is a way it looks again after 1 s, 2 s, 4 s, …; what has been found stays', async () => {
  const clock = new FakeClock();
  const told: (readonly RelayService[])[] = [];
  let answer: ManagedRelay | Error = { service: undefined, ...hosts() };
  const discovery = new ManagedDiscovery({
    read: async () => {
      if (answer instanceof Error) throw answer;
      return answer;
    },
    onServices: (services) => told.push(services),
    clock,
    random: () => 1,
  });
  const look = async (ms: number, next?: ManagedRelay | Error): Promise<number> => {
    if (next) answer = next;
    clock.pass(ms);
    await new Promise((resolve) => setImmediate(resolve));
    return clock.pending[0]!;
  };
  discovery.start();
  expect(await look(0)).toBe(1000);
  expect(await look(1000)).toBe(2000);
  expect(await look(2000, new Error('the API server cannot be reached'))).toBe(4000);
  const found = { service: service({ externalIPs: ['198.51.100.1'] }), ...hosts() };
  expect(await look(4000, found)).toBe(30_000);
  expect(told).toEqual([managedServices(found)]);
  expect(await look(30_000, new Error('away'))).toBe(30_000);
  expect(await look(30_000, { service: undefined, ...hosts() })).toBe(30_000);
  expect(await look(30_000, found)).toBe(30_000);
  expect(told).toHaveLength(1);
  await look(30_000, { service: service(), ...hosts(cloud) });
  expect(told[1]).toMatchObject([{ name: 'managed', ways: [{ host: '203.0.113.1', port: 30_478 }] }]);
  discovery.stop();
  expect(clock.pending).toEqual([]);
});

test('an external IP of our own node stands for the relays that run here, not for whatever kube-proxy would choose', () => {
  const addresses = [{ type: 'ExternalIP', address: '203.0.113.1' }];
  const nodes = [{ metadata: { name: 'n1' }, status: { addresses } }];
  const gateways: GatewayLike[] = [];
  const onSelf = [{ host: '100.64.1.5', port: 3478, isTls: false }];
  const named = service({ externalIPs: ['203.0.113.1', '203.0.113.2'], ports: [{ port: 3478 }] });
  expect(ways({ service: named, nodes, gateways, self: 'n1', onSelf })).toEqual([
    '100.64.1.5:3478',
    '203.0.113.2:3478',
  ]);
  expect(ways({ service: named, nodes, gateways, self: 'n2', onSelf: [] })).toEqual([
    '203.0.113.1:3478',
    '203.0.113.2:3478',
  ]);
});

test('told that there may be something else it looks at once, and once more after a look that was under way', async () => {
  const clock = new FakeClock();
  let looks = 0;
  let answer: () => void = () => undefined;
  const discovery = new ManagedDiscovery({
    read: () => {
      looks++;
      return new Promise((resolve) => (answer = () => resolve({ service: undefined, ...hosts() })));
    },
    onServices: () => undefined,
    clock,
    random: () => 1,
  });
  const answered = async (): Promise<void> => {
    answer();
    await new Promise((resolve) => setImmediate(resolve));
    clock.pass(0);
  };
  discovery.start();
  discovery.lookAgain();
  discovery.lookAgain();
  expect(looks).toBe(1);
  await answered();
  expect(looks).toBe(2);
  await answered();
  expect([looks, clock.pending]).toEqual([2, [2000]]);
  discovery.lookAgain();
  expect([looks, clock.pending]).toEqual([3, []]);
  await answered();
  discovery.stop();
  discovery.lookAgain();
  expect([looks, clock.pending]).toEqual([3, []]);
});

test('a node port that answers where relays run: each node is a relay of its own, ours without the port', () => {
  const service = { spec: { externalTrafficPolicy: 'Local', ports: [{ port: 3478, nodePort: 30_478 }] } };
  const two = hosts(gateway('n2', { externalIPs: ['203.0.113.2'] }), gateway('n1', { externalIPs: ['203.0.113.1'] }));
  const nodes = [...two.nodes, node('worker')];
  const { gateways } = two;
  const onSelf = [{ host: '100.64.1.5', port: 3478, isTls: false }];
  expect(managedServices({ service, nodes, gateways, self: 'n1', onSelf })).toEqual([
    { name: 'managed n1', ways: onSelf, isBalanced: true },
    { name: 'managed n2', ways: [{ host: '203.0.113.2', port: 30_478, isTls: false }], isBalanced: true },
  ]);
  const balanced = { ...service, spec: { ...service.spec, externalIPs: ['198.51.100.1'] } };
  expect(managedServices({ service: balanced, nodes, gateways, self: 'n1', onSelf })).toHaveLength(1);
});
