import { describe, expect, test } from 'vitest';
import type { Expression } from '@unbounded/nftables';
import { planFor } from '../../testdata.ts';
import { planIcmpErrors } from './icmp-errors.plan.ts';

const plan = planFor('g1', 'WireGuard');
const setOf = (name: string, of = plan): readonly string[] =>
  planIcmpErrors(of).sets.find((set) => set.name === name)!.elements;

describe('what errors are about tunnels', () => {
  test('far ends are nodes’ addresses, and what the node’s own tunnels have besides', () => {
    const [wg, ...others] = plan.wireGuard;
    const peer = { node: 'n', publicKey: 'k', endpoint: '[2001:db8::7]:40000', allowedIps: [] };
    const more = {
      ...plan,
      wireGuard: [{ ...wg!, peers: [...wg!.peers, peer] }, ...others],
      tunnels: [{ kind: 'IPIP', device: 'ipip1', mtuBytes: 1400, remoteIp: '192.0.2.7' } as const],
      externalTunnelPeers: ['192.0.2.8'],
    };
    expect(setOf('far_ends_ip', more)).toEqual(expect.arrayContaining(['10.1.0.0/24', '192.0.2.7', '192.0.2.8']));
    expect(setOf('far_ends_ip6', more)).toEqual(['2001:db8::7']);
  });

  test('ports are those of VXLAN, GENEVE and all nodes’ WireGuard', () => {
    expect(setOf('own_wireguard_ports').toSorted()).toEqual(['51820', '51822']);
    expect(setOf('far_end_ports')).toEqual(['4789', '6081', '51820', '51821', '51822']);
  });
});

test('a packet that is no ICMP costs two comparisons of its protocol', () => {
  const chain = planIcmpErrors(plan).chains.find(({ base }) => base);
  const first = chain!.rules.map(({ expressions }): Expression => expressions[0]!);
  expect(chain!.base!.hook).toBe('input');
  expect(first).toEqual([1, 58].map((value) => ({ match: 'meta', key: 'l4proto', op: '==', value })));
});
