import { describe, expect, test } from 'vitest';
import { planRelayWays } from './relay-ways.plan.ts';

const at = (host: string, port = 3478) => ({ host, port, isTls: false });

describe('the way to the managed relay', () => {
  test('is before kube-proxy’s, of the node’s own connections, and leaves the address as it is, in both families', () => {
    const [chain, ...others] = planRelayWays({
      ways: [at('203.0.113.5'), at('2001:db8::5', 4443)],
      isKubeProxyNft: false,
    });
    expect(others).toEqual([]);
    expect(chain).toMatchObject({ base: { type: 'nat', hook: 'output', policy: 'accept' } });
    expect(chain!.base!.priority).toBeLessThan(-100);
    expect(chain!.rules.map(({ expressions }) => [expressions[0], expressions[2], expressions.at(-1)])).toEqual([
      [
        { match: 'payload', field: 'ip.daddr', op: '==', value: '203.0.113.5' },
        { match: 'payload', field: 'th.dport', op: '==', value: 3478 },
        { do: 'dnat', to: '203.0.113.5' },
      ],
      [
        { match: 'payload', field: 'ip6.daddr', op: '==', value: '2001:db8::5' },
        { match: 'payload', field: 'th.dport', op: '==', value: 4443 },
        { do: 'dnat', to: '2001:db8::5' },
      ],
    ]);
  });

  test('is kube-proxy’s at a node that has the address itself', () => {
    for (const isKubeProxyNft of [false, true]) {
      const [chain] = planRelayWays({ ways: [at('203.0.113.5')], isKubeProxyNft });
      const notLocal = { match: 'fib-type', address: 'daddr', op: '!=', type: 'local' };
      expect(chain!.rules[0]!.expressions).toContainEqual(notLocal);
    }
  });

  test('is nobody’s while it is not known', () => {
    expect(planRelayWays({ ways: [], isKubeProxyNft: true })).toEqual([]);
  });
});
