import { describe, expect, test } from 'vitest';
import { parseWorld } from './parse-world.ts';
import { planIn } from '../explain/plan-table.ts';
import { findMember } from '../node.plan.ts';
import type { NodePlan } from '../plan.ts';
import { cluster, gateway, keyOf, pool, slice, worker } from '../testdata.ts';

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

  const isIn = (problems: readonly { readonly message: string }[], text: string): boolean =>
    problems.some(({ message }) => message.includes(text));

  test('a key stays with the node that had it in the last plan, whatever its name; only the newcomer is told', () => {
    const before = planIn(base, 's1-g1');
    const thief = { ...worker(1, 0), name: 'a-evil', wireGuardPublicKey: worker(1, 2).wireGuardPublicKey! };
    const objects = { ...base, slices: [slice(1, [thief, worker(1, 1), worker(1, 2)]), base.slices[1]!] };
    const plan = planIn(objects, 's1-g1', {}, before.holdings);
    expect(plan.probes).toEqual(before.probes);
    expect(plan.wireGuard).toEqual(before.wireGuard);
    expect(plan.problems).toEqual([
      {
        reason: 'DuplicateKey',
        message: `node a-evil announces the WireGuard public key ${thief.wireGuardPublicKey}, which belongs to node s1-w2: node a-evil gets no links; delete /etc/wireguard/server.priv on node a-evil and restart its agent`,
      },
    ]);
  });

  test('a key stays with a gateway of the pools rather than with a worker, also in the first plan', () => {
    const thief = { ...worker(1, 0), name: 'a-evil', wireGuardPublicKey: gateway(1, 1).wireGuardPublicKey };
    const objects = { ...base, slices: [slice(1, [thief, worker(1, 1), worker(1, 2)]), base.slices[1]!] };
    for (const node of ['s2-g1', 's1-w1'])
      expect(planIn(objects, node)).toEqual({ ...planIn(base, node), problems: planIn(objects, node).problems });
  });

  test('without a last plan two workers with one key both go without: a name gives nobody another’s key', () => {
    const objects = { ...base, slices: [slice(1, [worker(1, 1), cloned]), base.slices[1]!] };
    const plan = planIn(objects, 's1-g1');
    expect(plan.probes.map(({ node }) => node)).toEqual(['s2-g1']);
    expect(reasonsOf(plan.problems)).toEqual(['DuplicateKey', 'DuplicateKey']);
  });

  test('a key that is announced as the next one belongs to who announced it first, also when another uses it', () => {
    const next = keyOf('next');
    const rotating = { ...worker(1, 2), wireGuardNextPublicKey: next };
    const before = planIn({ ...base, slices: [slice(1, [worker(1, 1), rotating]), base.slices[1]!] }, 's1-g1');
    const thief = { ...worker(1, 1), wireGuardPublicKey: next };
    const rotated = { ...worker(1, 2), wireGuardPublicKey: next, wireGuardKeyGeneration: 1 };
    for (const victim of [rotating, rotated]) {
      const objects = { ...base, slices: [slice(1, [thief, victim]), base.slices[1]!] };
      const { probes } = planIn(objects, 's1-g1', {}, before.holdings);
      expect(probes.map(({ node }) => node)).toEqual(['s1-w2', 's2-g1']);
      expect(probes[0]).toMatchObject({ node: 's1-w2' });
    }
  });

  test('the node’s own key is never another’s, even if the objects do not show it yet', () => {
    const member = findMember(parseWorld(base), 's1-w1')!;
    const fresh = keyOf('fresh');
    const thief = { ...worker(1, 2), wireGuardPublicKey: fresh };
    const objects = { ...base, slices: [slice(1, [worker(1, 1), thief]), base.slices[1]!] };
    const plan = planIn(objects, 's1-w1', { member: { ...member, publicKey: fresh } });
    expect(plan.probes.map(({ node }) => node)).toEqual(['s1-g1']);
    expect(isIn(plan.problems, 'which belongs to node s1-w1: node s1-w2 gets no links')).toBe(true);
  });

  test.each(['x', 'not-a-key', keyOf('a').slice(1), `${keyOf('a')}=`, `${'A'.repeat(43)}=`, `${'A'.repeat(42)}B=`])(
    'the key %j is none: its node is told and gets no links, and the others have all of theirs',
    (key) => {
      const broken = { ...worker(1, 3), wireGuardPublicKey: key };
      const objects = { ...base, slices: [slice(1, [worker(1, 1), worker(1, 2), broken]), base.slices[1]!] };
      for (const node of ['s1-w1', 's1-g1', 's2-g1']) {
        const plan = planIn(objects, node);
        expect({ ...plan, problems: [] }).toEqual({ ...planIn(base, node), problems: [] });
        expect(reasonsOf(plan.problems)).toEqual(['InvalidKey']);
        expect(isIn(plan.problems, 'node s1-w3 wireGuardPublicKey')).toBe(true);
      }
    },
  );

  test.each([
    ['the key that another has', worker(1, 1).wireGuardPublicKey!],
    ['the next key of another', keyOf('next')],
  ])('a node that announces %s as its next one keeps the key that it has', (_, next) => {
    const [a, b] = [worker(1, 1), { ...worker(1, 2), wireGuardNextPublicKey: next }];
    const objects = {
      ...base,
      slices: [slice(1, [{ ...a, wireGuardNextPublicKey: keyOf('next') }, b]), base.slices[1]!],
    };
    const { problems, workers } = parseWorld(objects);
    expect(new Set(reasonsOf(problems))).toEqual(new Set(['DuplicateKey']));
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

  test('a block stays with the node that had it in the last plan, whatever the names; without one nobody has it', () => {
    const thief = { ...worker(1, 2), podCIDRs: worker(1, 3).podCIDRs! };
    const before = { ...base, slices: [slice(1, [worker(1, 1), worker(1, 3)]), base.slices[1]!] };
    const objects = { ...base, slices: [slice(1, [worker(1, 1), thief, worker(1, 3)]), base.slices[1]!] };
    const plan = planIn(objects, 's1-w1', {}, planIn(before, 's1-w1').holdings);
    expect(plan.problems.map(({ message }) => message)).toEqual([
      '100.65.33.0/24 of node s1-w2 overlaps 100.65.33.0/24 of node s1-w3, which keeps it: every node needs addresses of its own; delete and re-create the Node that got its addresses last',
    ]);
    expect(plan.blocks.find(({ prefix }) => prefix === '100.65.33.0/24')?.to).toMatchObject({
      nextHop: { node: 's1-w3' },
    });
    expect(planIn(objects, 's1-w1').blocks.map(({ prefix }) => prefix)).not.toContain('100.65.33.0/24');
  });

  test.each(['100.65.0.0/17', '100.65.32.5/32', '100.65.32.0/25'])(
    'a block %s that is not of the size the Site gives out takes none of another node’s addresses',
    (claimed) => {
      const objects = {
        ...base,
        slices: [slice(1, [worker(1, 1), worker(1, 2), { ...worker(1, 0), podCIDRs: [claimed] }]), base.slices[1]!],
      };
      const plan = planIn(objects, 's1-w1');
      expect(plan.blocks).toEqual(planIn(base, 's1-w1').blocks);
      expect(reasonsOf(plan.problems)).toEqual(['PodCIDROverlap']);
    },
  );

  test('a smaller part of a block that cannot be decided is nobody’s either, also not of one of the two', () => {
    const thief = { ...worker(1, 0), podCIDRs: ['100.65.32.0/24', '100.65.32.7/32'] };
    const third = { ...worker(1, 3), podCIDRs: ['100.65.32.9/32'] };
    const objects = { ...base, slices: [slice(1, [thief, worker(1, 1), worker(1, 2), third]), base.slices[1]!] };
    const plan = planIn(objects, 's1-w1');
    expect(plan.blocks.filter(({ prefix }) => prefix.startsWith('100.65.32.'))).toEqual([]);
    expect(reasonsOf(plan.problems)).toEqual(Array.from({ length: 4 }, () => 'PodCIDROverlap'));
  });

  test.each(['100.66.31.5/32', '100.66.0.0/16', '10.1.0.0/25', '198.51.100.0/24', '0.0.0.0/0', '127.0.0.0/8'])(
    'the block %s is not of the node’s Site: it is not routed, and the node is told what to do',
    (claimed) => {
      const thief = { ...worker(1, 3), podCIDRs: [claimed] };
      const objects = { ...base, slices: [slice(1, [worker(1, 1), worker(1, 2), thief]), base.slices[1]!] };
      const plan = planIn(objects, 's1-w1');
      expect({ ...plan, problems: [] }).toEqual({ ...planIn(base, 's1-w1'), problems: [] });
      expect(reasonsOf(plan.problems)).toEqual(['PodCIDRsOutsideSite']);
      expect(isIn(plan.problems, 'delete and re-create the Node')).toBe(true);
    },
  );

  test('a block outside of a Site that was made smaller stays with the node that has it', () => {
    const [first, second] = base.sites;
    const smaller = { ...first!, spec: { ...first!.spec, podCidrAssignments: [{ cidrBlocks: ['100.65.0.0/19'] }] } };
    const objects = { ...base, sites: [smaller, second!] };
    const held = planIn(base, 's1-w1').holdings;
    const blocks = (plan: NodePlan): string[] => plan.blocks.map(({ prefix }) => prefix);
    expect(blocks(planIn(objects, 's1-w1', {}, held))).toContain('100.65.32.0/24');
    expect(blocks(planIn(objects, 's1-w1'))).not.toContain('100.65.32.0/24');
  });

  test('a block of a Site that gives out none may lie outside of its pools, but not among others’ addresses', () => {
    const [first, second] = base.sites;
    const spec = { ...first!.spec, podCidrAssignments: [{ assignmentEnabled: false, cidrBlocks: ['100.65.0.0/16'] }] };
    const blocksWith = (block: string): string[] => {
      const slices = [slice(1, [worker(1, 1), { ...worker(1, 2), podCIDRs: [block] }]), base.slices[1]!];
      return planIn({ ...base, sites: [{ ...first!, spec }, second!], slices }, 's1-w1').blocks.flatMap(
        ({ prefix, to }) => (typeof to === 'object' && 'nextHop' in to && to.nextHop.node === 's1-w2' ? [prefix] : []),
      );
    };
    expect(blocksWith('172.20.2.0/24')).toContain('172.20.2.0/24');
    expect(blocksWith('10.2.0.0/24')).not.toContain('10.2.0.0/24');
    expect(blocksWith('100.66.32.0/24')).not.toContain('100.66.32.0/24');
  });

  test('the node’s own block is never another’s', () => {
    const thief = { ...worker(1, 2), podCIDRs: ['100.65.31.0/25'] };
    const plan = planIn({ ...base, slices: [slice(1, [worker(1, 1), thief]), base.slices[1]!] }, 's1-w1');
    expect(plan.blocks.map(({ prefix }) => prefix)).not.toContain('100.65.31.0/25');
    expect(reasonsOf(plan.problems)).toContain('PodCIDROverlap');
  });

  test('pods of two sites in one block are told', () => {
    const [first, second] = base.sites;
    const nodeless = { ...base, slices: [base.slices[0]!], gatewayPools: [base.gatewayPools[0]!] };
    const nested = { ...second!, spec: { ...second!.spec, podCidrAssignments: [{ cidrBlocks: ['100.65.128.0/17'] }] } };
    expect(parseWorld({ ...nodeless, sites: [first!, nested] }).problems).toEqual([
      {
        reason: 'PodCIDROverlap',
        message:
          'Site s2 cidrBlocks: 100.65.128.0/17 overlaps 100.65.0.0/16 of Site s1: every site needs blocks of its own',
      },
    ]);
  });
});

test('an address that is none is told and left out, and so is one outside of the nodeCidrs of the Site', () => {
  const broken = { ...worker(1, 2), internalIPs: ['10.1.0', '10.1.0.32', '8.8.8.8', '10.2.0.31', '127.0.0.1'] };
  const world = parseWorld({ ...base, slices: [slice(1, [broken])] });
  expect(reasonsOf(world.problems)).toEqual(['InvalidAddress']);
  expect(world.workers[0]?.internalIps).toEqual(['10.1.0.32']);
});
