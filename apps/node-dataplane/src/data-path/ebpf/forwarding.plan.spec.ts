import { encode, endpointV4 } from '@unbounded/bpf-maps';
import { describe, expect, test } from 'vitest';
import { planFor } from '../../testdata.ts';
import { planForwardingTables } from './forwarding.plan.ts';
import { createGroupIndexes } from '../group-indexes.ts';

const ALL = new Map([
  ['unbounded0', 10],
  ['vxlan0', 11],
  ['geneve0', 12],
  ['wg51821', 13],
  ['wg51820', 14],
]);

describe('the contents of the maps', () => {
  test('a peer of the site stands in its own record, what is behind gateways in a group', () => {
    const { v4, groups } = planForwardingTables(planFor('w1', 'VXLAN'), ALL, createGroupIndexes());
    expect(v4.get('100.65.31.0/24')).toEqual({
      remote: '10.1.0.31',
      vni: 1,
      ifindex: 11,
      protocol: 'vxlan',
      setKey: true,
      healthy: true,
      ownSource: true,
    });
    const far = v4.get('100.66.0.0/16');
    expect(far).toMatchObject({ group: 1, remote: '10.1.0.20', ifindex: 11 }); // the first member, for people
    expect(groups).toEqual([
      {
        name: expect.any(String),
        index: 1,
        family: 4,
        site: 's2',
        members: [
          {
            node: 'g1',
            tier: 0,
            record: {
              remote: '10.1.0.20',
              vni: 1,
              ifindex: 11,
              protocol: 'vxlan',
              setKey: true,
              healthy: true,
              ownSource: true,
            },
          },
        ],
      },
    ]);
  });

  test('WireGuard needs no tunnel key and no address: the device knows its peers', () => {
    const { v4 } = planForwardingTables(planFor('w1', 'WireGuard'), ALL, createGroupIndexes());
    const record = v4.get('100.65.31.0/24');
    expect(record).toEqual({ vni: 0, ifindex: 14, protocol: 'wireguard', setKey: false, healthy: true });
  });

  test('without its device a peer has no record, and a group no members: packets are dropped, not sent elsewhere', () => {
    const { v4, groups } = planForwardingTables(planFor('w1', 'VXLAN'), new Map(), createGroupIndexes());
    expect(v4.has('100.65.31.0/24')).toBe(false);
    expect(v4.get('100.66.0.0/16')).toMatchObject({ group: 1, healthy: false, ifindex: 0 });
    expect(groups).toMatchObject([{ index: 1, members: [] }]);
  });

  test('an IPv4 record shows no far end in an IPv6 underlay, for which only the members of its group have room', () => {
    const plan = planFor('w1', 'VXLAN');
    const groups = plan.groups.map((group) => ({
      ...group,
      members: group.members.map((member) => ({ ...member, remoteIp: 'fd10:1::20' })),
    }));
    const tables = planForwardingTables({ ...plan, groups }, ALL, createGroupIndexes());
    const shown = tables.v4.get('100.66.0.0/16')!;
    expect(shown).toMatchObject({ group: 1, ifindex: 11, protocol: 'vxlan' });
    expect(() => encode(endpointV4, shown)).not.toThrow();
    expect(tables.groups[0]!.members).toMatchObject([{ record: { remote: 'fd10:1::20' } }]);
  });

  test('more gateways than a group holds are a problem that says how many are used', () => {
    const plan = planFor('w1', 'VXLAN');
    const [group] = plan.groups;
    const crowded = { ...plan, groups: [{ ...group!, members: Array.from({ length: 17 }, () => group!.members[0]!) }] };
    const { groups, problems } = planForwardingTables(crowded, ALL, createGroupIndexes());
    expect(groups[0]!.members).toHaveLength(16);
    expect(problems).toEqual([
      expect.objectContaining({ reason: 'TooManyGateways', message: expect.stringContaining('the first 16 are used') }),
    ]);
  });

  test('a group that other prefixes use too keeps its number from plan to plan', () => {
    const indexes = createGroupIndexes({ somebody: 1 });
    const first = planForwardingTables(planFor('w1'), ALL, indexes);
    const second = planForwardingTables(planFor('w1'), ALL, indexes);
    expect(first.groups.map(({ index }) => index)).toEqual([2]);
    expect(second).toEqual(first);
  });
});
