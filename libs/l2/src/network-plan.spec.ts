import { annotations, MAX_L2_NETWORK_NODES, type Network, type NetworkEndpoint } from '@unbounded/crds';
import { describe, expect, it } from 'vitest';
import { clusterOf, createdEndpoint, nodeObject, protectedNetwork, timeOf } from './cluster.testdata.ts';
import { type HostingNode, type L2ClusterSnapshot, type NetworkPlan, planNetworks } from './index.ts';
import { network } from './testdata.ts';

const plan = (
  networks: readonly Network[],
  endpoints: readonly NetworkEndpoint[] = [],
  rest: Partial<L2ClusterSnapshot> = {},
): readonly NetworkPlan[] => planNetworks(clusterOf(networks, endpoints, rest));
const planOne = (...[one, ...rest]: [Network, (readonly NetworkEndpoint[])?, Partial<L2ClusterSnapshot>?]) =>
  plan([one], ...rest)[0]!;
const saysOf = ({ conditions }: NetworkPlan, type: string): string => {
  const found = conditions.find((condition) => condition.type === type);
  return found ? `${found.status} ${found.reason}: ${found.message}` : 'nothing';
};
const V4 = { prefixes: ['192.0.2.0/24'] };

describe('a Network whose endpoints stand', () => {
  const endpoints = [createdEndpoint(1, 'n1'), createdEndpoint(2, 'n2'), createdEndpoint(3, 'n2')];

  it('has a number, its nodes and an MTU, and is ready', () => {
    const planned = planOne(protectedNetwork('lan'), endpoints);
    expect(planned.fields).toEqual({ number: 1, mtu: 1366, endpoints: 3, nodes: ['n1', 'n2'] });
    expect(planned.conditions.map(({ type, status }) => [type, status])).toEqual([
      ['Accepted', 'True'],
      ['Numbered', 'True'],
      ['MtuKnown', 'True'],
      ['NodesFit', 'True'],
      ['NodesForward', 'True'],
      ['Ready', 'True'],
    ]);
  });

  it('is not planned while a list is not complete', () => {
    expect(plan([protectedNetwork('lan')], endpoints, { isComplete: false })).toEqual([]);
  });

  it('says when it is deleted why it is still there, and goes with the last endpoint', () => {
    const deleted = (count: number) => {
      const { metadata, ...rest } = protectedNetwork('lan', {}, { number: 4 });
      const gone = { ...rest, metadata: { ...metadata, deletionTimestamp: timeOf(9) } };
      return planOne(gone, endpoints.slice(0, count));
    };
    expect(saysOf(deleted(3), 'Deletable')).toBe(
      'False InUse: endpoints: 3; the Network goes when the last one is gone: delete the pods that are attached',
    );
    expect([deleted(3).isProtected, deleted(3).fields.number]).toEqual([true, 4]);
    expect([deleted(0).isProtected, saysOf(deleted(0), 'Deletable')]).toEqual([false, 'nothing']);
  });
});

describe('the number', () => {
  it('comes after the finalizer, which keeps the Network while endpoints stand', () => {
    const planned = planOne(network('lan', {}, {}));
    expect([planned.isProtected, planned.fields.number]).toEqual([true, undefined]);
    expect(saysOf(planned, 'Numbered')).toContain('Unknown NotProtected: metadata.finalizers');
    expect(saysOf(planned, 'Ready')).toBe('Unknown NotProtected: Numbered is Unknown');
  });

  it('stays with a Network from which somebody took the finalizer', () => {
    expect(planOne(network('lan', {}, { number: 9 })).fields.number).toBe(9);
  });
});

describe('contradictions', () => {
  it('of prefixes and gateways are told with field, value and remedy, and concern no other Network', () => {
    const bad = protectedNetwork('bad', {
      prefixes: ['192.0.2.0/24', '2001:db8::/64', '192.0.2.128/25'],
      gateways: ['198.51.100.1'],
    });
    const [wrong, right] = plan([bad, protectedNetwork('lan')], [createdEndpoint(1, 'n1')]);
    expect(saysOf(wrong!, 'Accepted')).toBe(
      'False PrefixesOverlap: spec.prefixes[2] "192.0.2.128/25": overlaps 192.0.2.0/24, so that addresses would be given twice: leave one of the two; spec.gateways[0] "198.51.100.1": must be inside of spec.prefixes 192.0.2.0/24, 2001:db8::/64, 192.0.2.128/25',
    );
    expect(saysOf(wrong!, 'Ready')).toBe('False PrefixesOverlap: Accepted is False');
    expect(saysOf(right!, 'Ready')).toContain('True');
  });

  it('are none between Networks with the same prefixes', () => {
    const planned = plan([protectedNetwork('a'), protectedNetwork('b')]);
    expect(planned.map((one) => saysOf(one, 'Accepted'))).toEqual(Array(2).fill(expect.stringContaining('True')));
  });
});

describe('the MTU', () => {
  const hosts = [createdEndpoint(1, 'n1'), createdEndpoint(2, 'n2')];
  const withMtus = (spec: Partial<Network['spec']>, ...mtus: readonly string[]) =>
    planOne(protectedNetwork('lan', spec), hosts.slice(0, mtus.length), {
      nodes: mtus.map((mtu, at) => nodeObject(`n${at + 1}`, mtu)),
    });
  const KEY = annotations.tunnelMtu;

  it.each<[string, ReturnType<typeof withMtus>, number | undefined, string]>([
    [
      'is what the narrowest node leaves',
      withMtus({}, '1500', '1420'),
      1366,
      `True Known: 1366: 1420 bytes of node n2 (annotation ${KEY}) less 54 for SRv6`,
    ],
    ['is less where that is asked for', withMtus({ mtu: 1300 }, '1420'), 1300, 'True Known: 1300, of spec.mtu'],
    ['is not more because that is asked for', withMtus({ mtu: 9000 }, '1420'), 1366, 'True Known: 1366: 1420 bytes'],
    ['is 9,000 at most', withMtus({}, '9500'), 9000, 'True Known: 9000, the most that a Network has'],
    [
      'names the nodes that say nothing, or nothing that is a number',
      withMtus({}, '1420', '-5'),
      1366,
      'less 54 for SRv6; not known of n2',
    ],
    [
      'is not known where no node says anything',
      withMtus({}, '', ''),
      undefined,
      `False NotAnnounced: nodes n1, n2: without the annotation ${KEY}, which their agents write; see their logs, or set spec.mtu`,
    ],
    ['is known where it is asked for', withMtus({ mtu: 1400 }, ''), 1400, 'True Known: 1400, of spec.mtu'],
    ['is not known before the first endpoint', withMtus({}), undefined, 'Unknown NoEndpoints: the first pod'],
    ['is 1,280 at least', withMtus({}, '1334'), 1280, 'True Known: 1280:'],
    [
      'is none where no node leaves enough',
      withMtus({}, '1333', '1'),
      undefined,
      `False UnderlayTooSmall: annotation ${KEY} of node n2 "1": leaves -53 bytes, and a network needs 1280: raise the MTU of its underlay until it leaves 1334 for a tunnel`,
    ],
    [
      'does not depend on a node that leaves too little',
      withMtus({}, '1333', '1420'),
      1366,
      `False UnderlayTooSmall: annotation ${KEY} of node n1 "1333": leaves 1279 bytes, and a network needs 1280: raise the MTU of its underlay until it leaves 1334 for a tunnel; it does not count, and longer packets`,
    ],
    [
      'stays what is asked for beside such a node',
      withMtus({ mtu: 1300 }, '1420', '0'),
      1300,
      'False UnderlayTooSmall',
    ],
    ['is no less with IPv4 alone', withMtus(V4, '1333'), undefined, 'False UnderlayTooSmall'],
  ])('%s', (_, planned, mtu, text) => {
    expect(planned.fields.mtu).toBe(mtu);
    expect(saysOf(planned, 'MtuKnown')).toContain(text);
  });
});

describe('more nodes than a Network has room for', () => {
  it('are told; nodes that are listed stay so, and the others host it as before', () => {
    const nodes = Array.from({ length: MAX_L2_NETWORK_NODES }, (_, at) => `n${at + 10}`).sort();
    const endpoints = [...nodes, 'n00'].map((node, at) => createdEndpoint(at + 1, node));
    const planned = planOne(protectedNetwork('lan', {}, { nodes }), endpoints);
    expect(planned.fields).toMatchObject({ nodes, endpoints: MAX_L2_NETWORK_NODES + 1, mtu: 1366 });
    expect(saysOf(planned, 'NodesFit')).toBe(
      'False TooManyNodes: nodes n00: a Network has at most 64 nodes: move the pods to others, or to a further Network',
    );
    expect(saysOf(planOne(protectedNetwork('lan'), endpoints.slice(0, -1)), 'NodesFit')).toContain('True');
  });
});

describe('what its nodes say', () => {
  const hosts = [1, 2, 3, 4, 5].map((number) => createdEndpoint(number, `n${number}`));
  const saying = (name: string, reason: string, message = 'why', status: 'True' | 'False' = 'False') => ({
    ...nodeObject(name),
    status: { conditions: [{ type: 'UnboundedL2', status, reason, message }] },
  });
  const says = (...nodes: readonly HostingNode[]): string[] => {
    const planned = planOne(protectedNetwork('lan'), hosts, { nodes });
    return [saysOf(planned, 'NodesForward'), saysOf(planned, 'Ready')];
  };

  it('makes it not ready where one does not forward, and names the node and its reason', () => {
    expect(says(saying('n1', 'InForce', 'fine', 'True'), saying('n2', 'LocatorNotCarried'))).toEqual([
      'False NodesDoNotForward: node n2: LocatorNotCarried: why',
      'False NodesDoNotForward: NodesForward is False',
    ]);
  });

  it('does not concern it while it is about single entries or the size of a Network, about nodes that do not host it, or nothing', () => {
    const entry = saying('n1', 'NotOfEndpoint');
    expect(says(entry, saying('n3', 'NetworkTooLarge'), saying('n9', 'NoLocator'), nodeObject('n2'))).toEqual([
      'True NodesForward: no node that hosts it has the condition UnboundedL2 False',
      'True Ready: nodes carry its frames',
    ]);
  });

  it('is shown of three nodes, and of each as far as there is room', () => {
    const [text] = says(...['n1', 'n2', 'n3', 'n4', 'n5'].map((name) => saying(name, 'L2Failed', 'x'.repeat(30_000))));
    expect(text).toMatch(
      /^False NodesDoNotForward: node n1: L2Failed: x+…; node n2: .*; node n3: L2Failed: x+…; and 2 nodes more$/,
    );
    expect(text!.length).toBeLessThan(1000);
  });
});
