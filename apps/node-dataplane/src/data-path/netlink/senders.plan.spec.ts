import { describe, expect, test } from 'vitest';
import { planFor } from '../../testdata.ts';
import { COUNTERS } from '../../connectivity/kernel/firewall-parts.ts';
import { planFirewall } from '../../connectivity/kernel/firewall.plan.ts';

const PROTOCOLS = ['VXLAN', 'GENEVE', 'IPIP'] as const;
const netlinkPlan = (protocol: (typeof PROTOCOLS)[number] | 'WireGuard', node = 'w1') =>
  planFor(node, protocol, 'netlink');
const chainsOf = (...given: Parameters<typeof planFirewall>): string[] =>
  planFirewall(...given).chains.map(({ name }) => name);
const elementsOf = (...given: Parameters<typeof planFirewall>) =>
  Object.fromEntries(planFirewall(...given).sets!.map(({ name, elements }) => [name, elements]));

describe('senders of tunnel packets', () => {
  test.each(PROTOCOLS)(
    '%s: every packet for a device of ours is let by for its pair of sources, or dropped',
    (protocol) => {
      const { chains } = planFirewall(netlinkPlan(protocol));
      const [check, tunnels] = [protocol.toLowerCase(), 'tunnels'].map((name) =>
        chains.find((own) => own.name === name)!,
      );
      expect(tunnels!.base).toMatchObject({ hook: 'input', policy: 'accept' });
      for (const { expressions } of tunnels!.rules)
        expect(expressions.at(-1)).toEqual({ do: 'goto', chain: check!.name });
      expect(check!.rules.at(-1)!.expressions).toEqual([
        { do: 'counter', name: COUNTERS.forgedInnerSource },
        { do: 'drop' },
      ]);
      for (const { expressions } of check!.rules.filter((rule) => rule.comment?.includes('of its sender')).slice(0, -1))
        expect(expressions.slice(-2)).toEqual([expect.objectContaining({ match: 'pair', op: '==' }), { do: 'return' }]);
    },
  );

  test('are pairs of an outer and an inner source', () => {
    const sets = elementsOf(netlinkPlan('VXLAN'));
    expect(sets['senders_ip_ip']).toEqual([
      '10.1.0.20 . 10.2.0.0/24',
      '10.1.0.20 . 100.65.20.0/24',
      '10.1.0.20 . 100.66.0.0/16',
      '10.1.0.20 . 100.65.30.0/32', // of the node's own echo, which the gateway returns
      '10.1.0.31 . 100.65.31.0/24',
    ]);
  });

  test('of kinds whose devices have far ends are looked at only if they are one', () => {
    expect(elementsOf(netlinkPlan('GENEVE'))['geneve_peers_ip']).toEqual(['10.1.0.20', '10.1.0.31']);
    expect(elementsOf(netlinkPlan('IPIP'))['ipip_peers_ip']).toEqual(['10.1.0.20', '10.1.0.31']);
    const { chains } = planFirewall(netlinkPlan('IPIP'));
    const { rules } = chains.find(({ name }) => name === 'tunnels')!;
    expect(rules[0]!.expressions).toContainEqual(expect.objectContaining({ match: 'set', set: 'ipip_peers_ip' }));
  });

  test('are not looked at where no device of ours takes the packets: they are for somebody else', () => {
    for (const protocol of PROTOCOLS) {
      const without = chainsOf(netlinkPlan(protocol), { tunnels: [] });
      expect(without).toEqual(chainsOf(netlinkPlan('WireGuard')));
      expect(without).not.toContain('tunnels');
    }
  });

  test('of a device that is no longer wanted are nobody until it is gone', () => {
    const left = [{ kind: 'VXLAN' }, { kind: 'GENEVE', remoteIp: '10.1.0.31' }] as const;
    expect(chainsOf(netlinkPlan('WireGuard'), { tunnels: left })).toEqual(
      expect.arrayContaining(['vxlan', 'geneve', 'tunnels']),
    );
    const sets = elementsOf(netlinkPlan('WireGuard'), { tunnels: left });
    expect([sets['senders_ip_ip'], sets['geneve_peers_ip']]).toEqual([[], ['10.1.0.31']]);
  });

  test('of a device that takes packets of everybody are looked at wherever they come from', () => {
    const { chains, sets } = planFirewall(netlinkPlan('GENEVE'), { tunnels: [{ kind: 'GENEVE' }] }); // as the other data path has it
    const tunnels = chains.find(({ name }) => name === 'tunnels')!;
    expect(JSON.stringify(tunnels.rules)).not.toContain('"match":"set"');
    expect(sets!.map(({ name }) => name)).not.toContain('geneve_peers_ip');
  });

  test('are not looked at under the eBPF data path', () => {
    expect(chainsOf(planFor('w1', 'VXLAN'))).not.toContain('tunnels');
  });

  test('nobody may send where the plan names nobody', () => {
    const sets = elementsOf({ ...netlinkPlan('VXLAN'), senders: [] });
    expect(chainsOf({ ...netlinkPlan('VXLAN'), senders: [] })).toContain('vxlan');
    expect(sets['senders_ip_ip']).toEqual([]);
  });
});
