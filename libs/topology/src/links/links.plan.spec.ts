import { describe, expect, test } from 'vitest';
import { planIn, tableOf } from '../explain/plan-table.ts';
import { cluster, gateway, inFamilies, join, pool } from '../testdata.ts';

describe('MTU', () => {
  const objects = cluster({ sites: 2, gateways: 2, workers: 2, protocol: 'VXLAN' });

  test('a narrower path gets routes of its own, and pods and devices keep theirs', () => {
    const plan = planIn(objects, 's1-w1', { pathMtuBytes: new Map([['s1-w2', 1300]]) });
    expect(plan.mtuBytes).toBe(1420);
    expect(plan.tunnels[0]?.mtuBytes).toBe(1442);
    expect(plan.blocks.map(({ prefix, mtuBytes }) => [prefix, mtuBytes])).toEqual([
      ['10.2.0.0/24', 1420],
      ['100.65.21.0/24', 1420],
      ['100.65.22.0/24', 1420],
      ['100.65.32.0/24', 1300],
      ['100.66.0.0/16', 1420],
    ]);
  });

  test('a site behind several gateways has the MTU of the narrowest', () => {
    const plan = planIn(objects, 's1-w1', { pathMtuBytes: new Map([['s1-g2', 1280]]) });
    expect(plan.blocks.find(({ prefix }) => prefix === '100.66.0.0/16')?.mtuBytes).toBe(1280);
  });

  test('a path that carries more than the objects allow changes nothing', () => {
    const plan = planIn(objects, 's1-w1', { pathMtuBytes: new Map([['s1-w2', 9000]]) });
    expect(plan).toEqual(planIn(objects, 's1-w1'));
  });

  test('a wide block inside a narrow one keeps its own route', () => {
    const three = cluster({ sites: 3, gateways: 1, workers: 1 });
    const routed = {
      ...three,
      // No way to the one leads round by the other.
      poolPeerings: ['p2', 'p3'].map((far) => join('poolPeerings', far, { gatewayPools: ['p1', far] })),
      gatewayPools: [
        three.gatewayPools[0]!,
        pool('p2', [gateway(2, 1)], { routedCidrs: ['192.168.0.0/16'] }),
        pool('p3', [gateway(3, 1)], { routedCidrs: ['192.168.7.0/24'] }),
      ],
    };
    const { blocks } = planIn(routed, 's1-g1', { pathMtuBytes: new Map([['s2-g1', 1300]]) });
    const mtuOf = (block: string): number => blocks.find(({ prefix }) => prefix === block)!.mtuBytes;
    expect([mtuOf('192.168.0.0/16'), mtuOf('192.168.7.0/24')]).toEqual([1300, 1420]);
  });
});

describe('the family of a link’s underlay', () => {
  const objects = cluster({ sites: 2, gateways: 1, workers: 1 });
  const dual = inFamilies(objects, '4', '46');
  const endpointOf = (clusterObjects: typeof objects): string | undefined =>
    planIn(clusterObjects, 's1-g1').wireGuard[0]?.peers[0]?.endpoint;

  test('is IPv4 when both ends have it', () => expect(endpointOf(dual)).toBe('203.0.113.121:51831'));

  test('is IPv6 when one end has no IPv4', () => {
    const without = { ...gateway(2, 1), externalIPs: ['2001:db8::121'], internalIPs: ['fd00:2::21'] };
    expect(endpointOf({ ...dual, gatewayPools: [dual.gatewayPools[0]!, pool('p2', [without])] })).toBe(
      '[2001:db8::121]:51831',
    );
  });

  test('no family in common is told, and there is no link', () => {
    const without = { ...gateway(2, 1), externalIPs: ['2001:db8::121'], internalIPs: ['fd00:2::21'] };
    const plan = planIn({ ...objects, gatewayPools: [objects.gatewayPools[0]!, pool('p2', [without])] }, 's1-g1');
    expect(plan.groups).toEqual([]);
    expect(plan.probes.map(({ node }) => node)).toEqual(['s1-w1']);
    expect(plan.problems[0]?.message).toMatch(/^link s1-g1 - s2-g1: neither end has an address /);
  });
});

describe('gateways of one pool', () => {
  const objects = cluster({ sites: 2, gateways: 3, workers: 1, protocol: 'WireGuard' });
  const groupIn = (names: readonly string[]) => {
    const nodes = [1, 2, 3].map((i) => gateway(2, i)).filter(({ name }) => names.includes(name));
    const [group] = planIn({ ...objects, gatewayPools: [objects.gatewayPools[0]!, pool('p2', nodes)] }, 's1-g1').groups;
    return [group?.name, ...(group?.members.map(({ tier, node }) => `${tier} ${node}`) ?? [])];
  };

  test('a group keeps its name while gateways come and go', () => {
    expect(groupIn(['s2-g1', 's2-g2', 's2-g3'])).toEqual([
      'site s2 IPv4',
      ...['0 s2-g1', '0 s2-g2', '0 s2-g3', '1 s1-g2', '1 s1-g3'],
    ]);
    expect(groupIn(['s2-g3'])).toEqual(['site s2 IPv4', '0 s2-g3', '1 s1-g2', '1 s1-g3']);
  });

  test('each listens for the other on the other’s port', () => {
    const at = (node: string, peer: string) =>
      planIn(objects, node).wireGuard.find(({ peers }) => peers.some((own) => own.node === peer));
    expect(at('s1-g1', 's1-g2')).toMatchObject({ listenPort: 51832, peers: [{ endpoint: '10.1.0.22:51831' }] });
    expect(at('s1-g2', 's1-g1')).toMatchObject({ listenPort: 51831, peers: [{ endpoint: '10.1.0.21:51832' }] });
  });

  test('unencrypted ones may forward for others, and encrypted ones need no exception', () => {
    const transitPeers = (some: typeof objects, node: string): string[] =>
      planIn(some, node).tunnels.flatMap(({ isTransit, remoteIp }) => (isTransit ? [remoteIp] : []));
    expect(transitPeers(objects, 's1-g1')).toEqual([]);
    const open = cluster({ sites: 1, gateways: 3, workers: 1, protocol: 'GENEVE' });
    expect(transitPeers(open, 's1-g1')).toEqual(['10.1.0.22', '10.1.0.23']);
    expect(transitPeers(open, 's1-w1')).toEqual([]);
  });
});

test('an assignment that asks for cleartext from behind a NAT leaves both ends without the link', () => {
  const objects = {
    ...cluster({ sites: 2, gateways: 1, workers: 1 }),
    assignments: [join('assignments', 'a', { sites: ['s1', 's2'], gatewayPools: ['p1'], tunnelProtocol: 'VXLAN' })],
  };
  expect(planIn(objects, 's2-w1').problems.map(({ reason }) => reason)).toContain('NoEndpoint');
  expect(tableOf(planIn(objects, 's2-w1'))).not.toContain('s1-g1');
  expect(tableOf(planIn(objects, 's1-g1'))).not.toContain('s2-w1');
});
