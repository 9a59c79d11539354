import { describe, expect, test } from 'vitest';
import { parseWorld } from './parse-world.ts';
import { planIn } from './plan-table.testdata.ts';
import { cluster, gateway, pool, slice, worker } from './testdata.ts';

const base = cluster({ sites: 2, gateways: 1, workers: 2 });
const reasonsOf = (problems: readonly { readonly reason: string }[]): string[] => problems.map(({ reason }) => reason);

describe('a node that stands twice', () => {
  test('in two pools belongs to the first by name', () => {
    const objects = { ...base, gatewayPools: [pool('b', [gateway(1, 1)]), pool('a', [gateway(1, 1)])] };
    const { pools } = parseWorld(objects);
    expect([pools.get('a')?.gateways.length, pools.get('b')?.gateways.length]).toEqual([1, 0]);
  });

  test('in a pool and a slice is a gateway', () => {
    const both = { ...worker(1, 9), name: 's1-g1' };
    const world = parseWorld({ ...base, slices: [slice(1, [worker(1, 1), both]), base.slices[1]!] });
    expect(world.workers.map(({ name }) => name)).not.toContain('s1-g1');
  });

  test('in two slices is in the site of the first', () => {
    const moved = parseWorld({ ...base, slices: [slice(1, [worker(1, 1)]), slice(2, [worker(1, 1)])] });
    expect(moved.workers.map(({ name, site }) => [name, site])).toEqual([['s1-w1', 's1']]);
  });
});

describe('what two nodes claim', () => {
  const cloned = { ...worker(1, 2), wireGuardPublicKey: worker(1, 1).wireGuardPublicKey! };

  test('a key stays with the first by name, and the other gets no links', () => {
    const objects = { ...base, slices: [slice(1, [worker(1, 1), cloned]), base.slices[1]!] };
    const { problems } = parseWorld(objects);
    expect(problems[0]?.message).toBe(
      `node s1-w2 has the WireGuard public key ${cloned.wireGuardPublicKey} of node s1-w1, and gets no links: delete /etc/wireguard/server.priv on one of them and restart its agent`,
    );
    expect(planIn(objects, 's1-g1').probes.map(({ node }) => node)).not.toContain('s1-w2');
  });

  test.each([
    ['the key that another has', worker(1, 1).wireGuardPublicKey!],
    ['the next key of another', 'next'],
  ])('a node that announces %s as its next one keeps the key that it has', (_, next) => {
    const [a, b] = [worker(1, 1), { ...worker(1, 2), wireGuardNextPublicKey: next }];
    const objects = { ...base, slices: [slice(1, [{ ...a, wireGuardNextPublicKey: 'next' }, b]), base.slices[1]!] };
    const { problems, workers } = parseWorld(objects);
    expect(reasonsOf(problems)).toEqual(['DuplicateKey']);
    expect(workers[1]).toMatchObject({ publicKey: b.wireGuardPublicKey, nextPublicKey: undefined });
  });

  test('a port above those of gateways belongs to links with a new key, and is no gateway’s', () => {
    const wrong = { ...gateway(1, 1), gatewayWireguardPort: 55220 };
    expect(
      parseWorld({ ...base, gatewayPools: [pool('p1', [wrong])] }).pools.get('p1')?.gateways[0]?.gatewayPort,
    ).toBeUndefined();
  });

  test('a gateway port stays with the first by name', () => {
    const same = { ...gateway(2, 1), gatewayWireguardPort: gateway(1, 1).gatewayWireguardPort! };
    const objects = { ...base, gatewayPools: [base.gatewayPools[0]!, pool('p2', [same])] };
    expect(reasonsOf(parseWorld(objects).problems)).toEqual(['DuplicateGatewayPort']);
    const plan = planIn(objects, 's1-g1');
    expect(reasonsOf(plan.problems)).toContain('GatewayPortMissing');
    expect(plan.wireGuard.map(({ name }) => name)).not.toContain('wg51841');
    expect(plan.groups).toEqual([{ name: 'site s2 IPv4', family: 4, site: 's2', members: [] }]);
  });

  test('the mesh’s own port is no gateway’s', () => {
    const wrong = { ...gateway(1, 1), gatewayWireguardPort: 51820 };
    expect(parseWorld({ ...base, gatewayPools: [pool('p1', [wrong])] }).pools.get('p1')?.gateways[0]?.gatewayPort).toBe(
      undefined,
    );
  });

  test('a block stays with the first, and the other’s is not routed', () => {
    const thief = { ...worker(1, 2), podCIDRs: worker(1, 3).podCIDRs! };
    const objects = { ...base, slices: [slice(1, [worker(1, 1), thief, worker(1, 3)]), base.slices[1]!] };
    const plan = planIn(objects, 's1-w1');
    expect(plan.problems.map(({ message }) => message)).toContain(
      '100.65.33.0/24 of node s1-w3 overlaps 100.65.33.0/24 of node s1-w2, which keeps it: every node needs addresses of its own',
    );
    expect(plan.endpoints.find(({ prefix }) => prefix === '100.65.33.0/24')?.via).toMatchObject({
      nextHop: { node: 's1-w2' },
    });
  });

  test('the node’s own block is never another’s', () => {
    const thief = { ...worker(1, 2), podCIDRs: ['100.65.31.0/25'] };
    const plan = planIn({ ...base, slices: [slice(1, [worker(1, 1), thief]), base.slices[1]!] }, 's1-w1');
    expect(plan.endpoints.map(({ prefix }) => prefix)).not.toContain('100.65.31.0/25');
    expect(reasonsOf(plan.problems)).toContain('AddressesTaken');
  });

  test('pods of two sites in one block are told', () => {
    const [first, second] = base.sites;
    const nested = { ...second!, spec: { ...second!.spec, podCidrAssignments: [{ cidrBlocks: ['100.65.128.0/17'] }] } };
    expect(parseWorld({ ...base, sites: [first!, nested] }).problems).toEqual([
      {
        reason: 'OverlappingPodCIDRs',
        message:
          'Site s2 cidrBlocks: 100.65.128.0/17 overlaps 100.65.0.0/16 of Site s1: every site needs blocks of its own',
      },
    ]);
  });
});

test('an address that is none is told and left out', () => {
  const broken = { ...worker(1, 2), internalIPs: ['10.1.0', '10.1.0.32'] };
  const world = parseWorld({ ...base, slices: [slice(1, [broken])] });
  expect(reasonsOf(world.problems)).toEqual(['InvalidAddress']);
  expect(world.workers[0]?.internalIps).toEqual(['10.1.0.32']);
});
