import { formatAddress, formatPrefix } from '@unbounded/ip';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type L2Plan, type L2Snapshot, MOST_ENDPOINTS_OF_NODE, planL2 } from './index.ts';
import { endpoint, fdbEntry, neighbor, network, snapshotOf } from './testdata.ts';

const lan = network('lan');
const [near, far] = [endpoint(1, 'n1'), endpoint(2, 'n2')];
const plan = (rest: Partial<L2Snapshot> = {}): L2Plan => planL2({ ...snapshotOf('n1', [lan], [near, far]), ...rest });

describe('the plan of a node', () => {
  it('leads to a device of its own, and to the locator of the node that has the other endpoint', () => {
    const { fdb, neighbors, ports, networks, problems } = plan();
    expect(problems).toEqual([]);
    expect(fdb.map(({ mac, to }) => [mac, 'device' in to ? to.device : formatPrefix(to.locator)])).toEqual([
      ['02:00:00:00:00:01', 'l2-e1'],
      ['02:00:00:00:00:02', 'fd53:0:0:2::/64'],
    ]);
    expect(neighbors.map(({ ip, mac }) => `${formatAddress(ip)} ${mac}`)).toEqual([
      '192.0.2.1 02:00:00:00:00:01',
      '2001:db8::1 02:00:00:00:00:01',
      '192.0.2.2 02:00:00:00:00:02',
      '2001:db8::2 02:00:00:00:00:02',
    ]);
    expect(ports).toMatchObject([{ device: 'l2-e1', network: 7, segment: 0, isTrusted: false }]);
    expect(networks).toMatchObject([{ number: 7, mtu: 1366, replicates: { broadcast: false, unknownUnicast: false } }]);
    expect(networks[0]!.replicas.map(formatPrefix)).toEqual(['fd53:0:0:2::/64']);
  });

  it('has nothing of a network without an endpoint on it, or without a number or an MTU', () => {
    const empty = { networks: [], ports: [], fdb: [], neighbors: [], problems: [] };
    expect(planL2(snapshotOf('n1', [lan], [far]))).toEqual(empty);
    expect(plan({ networks: [network('lan', {}, {})] })).toEqual(empty);
    expect(plan({ networks: [network('lan', {}, { number: 7 })] })).toEqual(empty);
  });

  it('keeps segments apart but for those that reach each other, in both directions', () => {
    const segments = [{ name: 'web', reaches: ['db'] }, { name: 'db' }, { name: 'office' }];
    const endpoints = [endpoint(1, 'n1', { segment: 'web' }), endpoint(2, 'n2', { segment: 'db' })];
    const { fdb, networks, ports } = planL2(snapshotOf('n1', [network('lan', { segments })], endpoints));
    const [web, db] = [ports[0]!.segment, fdb[1]!.segment];
    expect(networks[0]!.segmentPairs).toEqual([
      [db, web],
      [web, db],
    ]);
    expect(new Set([0, web, db]).size).toBe(3);
  });
});

const created = <T extends { readonly metadata: object }>(one: T, at: number): T => ({
  ...one,
  metadata: { ...one.metadata, creationTimestamp: new Date(at * 1000).toISOString() },
});

describe('an endpoint that was there before its Network', () => {
  const network1 = created(lan, 10);
  const later = planL2(snapshotOf('n1', [network1], [created(near, 10), created(far, 10)]));

  it('does not count, at its own node or at others, and is a problem: nobody has applied the selectors to it', () => {
    const { ports, fdb, neighbors, problems } = planL2(
      snapshotOf('n1', [network1], [created(near, 10), created({ ...far, spec: { ...far.spec, isTrusted: true } }, 9)]),
    );
    expect(later.problems).toEqual([]);
    expect(fdb).toEqual(later.fdb.filter(({ mac }) => mac !== far.spec.mac));
    expect([ports, neighbors.length]).toEqual([later.ports, near.spec.addresses.length]);
    expect(problems).toMatchObject([
      { reason: 'OlderThanNetwork', name: `${far.metadata.namespace}/${far.metadata.name}` },
    ]);
    const own = planL2(snapshotOf('n1', [network1], [created(near, 9), created(far, 10)]));
    expect([own.ports, own.networks]).toEqual([[], []]);
  });
});

describe('a node with more endpoints than it can have ports', () => {
  // The youngest first: a list is in the order of names.
  const many = Array.from({ length: MOST_ENDPOINTS_OF_NODE + 2 }, (_, at) => created(endpoint(at + 10, 'n3'), -at));
  const { fdb, problems } = planL2(snapshotOf('n1', [lan], [...many, near, far]));

  it('counts with the oldest ones, as one problem, and others count wholly', () => {
    const of = (node: number) =>
      fdb.filter(({ to }) => 'locator' in to && formatPrefix(to.locator) === `fd53:0:0:${node}::/64`);
    expect(of(3)).toHaveLength(MOST_ENDPOINTS_OF_NODE);
    expect(of(2)).toHaveLength(1);
    const macs = new Set(fdb.map(({ mac }) => mac));
    expect(many.map(({ spec }) => macs.has(spec.mac)).indexOf(false)).toBe(0);
    expect(many.map(({ spec }) => macs.has(spec.mac)).lastIndexOf(false)).toBe(1);
    expect(problems).toMatchObject([
      {
        reason: 'TooManyEndpoints',
        field: 'spec.node',
        value: 'n3',
        remedy: expect.stringContaining('has 1026 endpoints'),
      },
    ]);
  });
});

describe('an entry that says more than its endpoint', () => {
  const forged = endpoint(9, 'n3');
  it.each<[what: string, rest: Partial<L2Snapshot>, reason: string, text: string]>([
    ['of an endpoint that is none', { fdbEntries: [fdbEntry(forged)] }, 'NoSuchEndpoint', 'shop/e9'],
    [
      'of another node’s endpoint',
      { fdbEntries: [fdbEntry(far, {}, { managingNode: 'n3' })] },
      'NotOfEndpoint',
      'the endpoint is on node n2',
    ],
    [
      'with a MAC address that the endpoint has not',
      { fdbEntries: [fdbEntry(far, { mac: near.spec.mac })] },
      'NotOfEndpoint',
      'the endpoint has 02:00:00:00:00:02',
    ],
    [
      'with an address that the endpoint has not',
      { neighbors: [neighbor(far, '192.0.2.1')] },
      'NotOfEndpoint',
      'the endpoint has 02:00:00:00:00:02 and 192.0.2.2',
    ],
    [
      'with the MAC address of another',
      { neighbors: [neighbor(far, '192.0.2.2', { mac: near.spec.mac })] },
      'NotOfEndpoint',
      '192.0.2.2 at 02:00:00:00:00:01',
    ],
    [
      'outside of the prefixes',
      { neighbors: [neighbor(far, '198.51.100.1')] },
      'OutsidePrefixes',
      'must be in one of the prefixes',
    ],
    ['of a node without a locator', { locators: new Map() }, 'NoLocator', 'n2'],
    [
      'of a node to which no link leads',
      { unreached: new Set(['n2']) },
      'LocatorNotCarried',
      'n2: no link of this node',
    ],
    ['of an interface that is not there', { ports: new Map() }, 'NoPort', 'net1'],
  ])('%s is passed over, with a problem', (_, rest, reason, text) => {
    const { problems, fdb, neighbors } = plan(rest);
    const problem = problems.find((one) => one.reason === reason);
    expect(`${problem?.value}: ${problem?.remedy}`).toContain(text);
    const count = fdb.length + neighbors.length + problems.length;
    expect(count).toBe((rest.fdbEntries ?? [1, 2]).length + (rest.neighbors ?? [1, 2, 3, 4]).length);
  });

  it('of a node to which no link leads, nothing is replicated to', () => {
    const replicasOf = (unreached: ReadonlySet<string>) =>
      planL2({ ...snapshotOf('n1', [lan], [near, far]), unreached }).networks.map(({ replicas }) => replicas.length);
    expect([replicasOf(new Set()), replicasOf(new Set(['n2']))]).toEqual([[1], [0]]);
  });

  it('of a segment that is none is not carried', () => {
    const { problems, ports, fdb } = planL2(snapshotOf('n1', [lan], [endpoint(1, 'n1', { segment: 'gone' })]));
    expect(problems).toMatchObject([{ kind: 'NetworkEndpoint', name: 'shop/e1', reason: 'NoSuchSegment' }]);
    expect([ports, fdb]).toEqual([[], []]);
  });

  it('that has no status yet is waited for', () => {
    const { status: _, ...made } = fdbEntry(far);
    expect(plan({ fdbEntries: [made] })).toMatchObject({ fdb: [], problems: [] });
  });
});

describe('plans of all nodes together', () => {
  const cluster = fc.record({
    nodes: fc.integer({ min: 1, max: 5 }),
    places: fc.array(fc.tuple(fc.nat(4), fc.constantFrom('lan', 'other')), { minLength: 1, maxLength: 12 }),
  });

  it('lead each frame to the one port that has its address, over the node that has the port, and to no other network', () => {
    fc.assert(
      fc.property(cluster, ({ nodes, places }) => {
        const networks = [lan, network('other', {}, { number: 8, mtu: 1366 })];
        // Addresses are the same in both networks.
        const endpoints = places.map(([at, name], index) => ({
          ...endpoint((index >> 1) + 1, `n${(at % nodes) + 1}`, { network: name }),
          metadata: { namespace: 'shop', name: `e${index}` },
        }));
        const unique = [...new Map(endpoints.map((one) => [fdbEntry(one).metadata.name, one])).values()];
        const plans = new Map(
          Array.from({ length: nodes }, (_, at) => [`n${at + 1}`, planL2(snapshotOf(`n${at + 1}`, networks, unique))]),
        );
        for (const { network: number, port, deliveredAt } of deliveries(plans))
          expect(deliveredAt).toEqual({ number, ...port });
      }),
    );
  });

  interface Delivery {
    readonly network: number;
    readonly port: { readonly node: string; readonly device: string };
    readonly deliveredAt: object;
  }

  /** Every frame of the cluster: from each port to each port of its network. */
  const deliveries = (plans: ReadonlyMap<string, L2Plan>): Delivery[] => {
    const ports = [...plans].flatMap(([node, { ports: own }]) => own.map((port) => ({ node, ...port })));
    return ports.flatMap((from) =>
      ports
        .filter((to) => to.network === from.network)
        .map((to): Delivery => {
          const entry = (node: string, number: number) =>
            plans.get(node)!.fdb.find((one) => one.network === number && one.mac === to.mac)!.to;
          const first = entry(from.node, from.network);
          const port = { node: to.node, device: to.device };
          if ('device' in first)
            return { network: from.network, port, deliveredAt: { number: from.network, node: from.node, ...first } };
          const node = `n${(first.locator.address >> 64n) & 0xffffn}`;
          const last = entry(node, from.network);
          return { network: from.network, port, deliveredAt: { number: from.network, node, ...last } };
        }),
    );
  };
});
