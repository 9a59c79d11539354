import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type FilterRule, type FilterTable, parseFilterTable } from './iptables-save.codec.ts';
import { OPENED_CHAINS, OPENING, planClosings, planOpenings } from './openings.plan.ts';

/** Of lines as iptables-save prints them. */
const table = (...lines: string[]): FilterTable => parseFilterTable(['*filter', ...lines, 'COMMIT'].join('\n'))!;
const forward = (policy: 'ACCEPT' | 'DROP', ...rules: string[]): FilterTable =>
  table(
    ':INPUT ACCEPT [0:0]',
    `:FORWARD ${policy} [0:0]`,
    ':DOCKER-USER - [0:0]',
    ':cali-FORWARD - [0:0]',
    ':KUBE-FIREWALL - [0:0]',
    ...rules.map((rule) => `-A ${rule}`),
  );
const OURS = `FORWARD -m mark --mark 0x80/0x80 -m comment --comment "unbounded: belongs to the overlay" -j ACCEPT`;
const DOCKER = 'FORWARD -j DOCKER-USER';
const REJECT = 'FORWARD -j REJECT --reject-with icmp-port-unreachable';
const CALICO = 'FORWARD -m comment --comment "cali:abc" -j cali-FORWARD';
const KUBERNETES = ['FORWARD -j KUBE-FIREWALL', 'KUBE-FIREWALL -d 127.0.0.0/8 -j DROP'];

const inserted = (of: FilterTable): (number | string)[] =>
  planOpenings(of).insertions.map(({ chain, position }) => (chain === 'FORWARD' ? position : chain));

test('what refuses nothing gets no rule, and loses the one that it had', () => {
  for (const of of [
    table(),
    forward('ACCEPT'),
    forward('ACCEPT', DOCKER, 'DOCKER-USER -j RETURN'),
    forward('ACCEPT', ...KUBERNETES),
    forward('ACCEPT', 'FORWARD -i eth0', 'FORWARD -j LOG --log-prefix "-j DROP"'),
  ])
    expect(planOpenings(of)).toEqual({ refusals: [], blocked: [], removals: [], insertions: [] });
  expect(planOpenings(forward('ACCEPT', OURS)).removals).toEqual([{ chain: 'FORWARD', rule: OPENING }]);
});

test.each([
  ['a policy of DROP', forward('DROP'), 'policy DROP'],
  ['a rule that rejects', forward('ACCEPT', REJECT), 'rule "-j REJECT'],
  ['a rule of a chain that it leads to', forward('ACCEPT', DOCKER, 'DOCKER-USER -j DROP'), 'rule "-j DOCKER-USER"'],
  ['a target that nobody knows', forward('ACCEPT', 'FORWARD -j NFQUEUE --queue-num 1'), 'rule "-j NFQUEUE'],
])('%s is opened by a rule at the head', (_, of, why) => {
  const { refusals, blocked, insertions } = planOpenings(of);
  expect(refusals).toEqual([{ chain: 'FORWARD', why: expect.stringContaining(why) }]);
  expect([blocked, insertions]).toEqual([[], [{ chain: 'FORWARD', position: 1 }]]);
  expect(planClosings(of)).toMatchObject({ blocked: refusals, removals: [], insertions: [] });
});

test('chains that lead into each other have an end', () => {
  expect(planOpenings(forward('ACCEPT', DOCKER, 'DOCKER-USER -j DOCKER-USER')).refusals).toEqual([]);
});

test('network policies decide before our rule: also when they come later', () => {
  expect(inserted(forward('DROP', CALICO, DOCKER))).toEqual([2]);
  expect(inserted(forward('DROP', CALICO, OURS))).toEqual([]);
  expect(inserted(forward('DROP', OURS, CALICO))).toEqual([2]);
});

test('what refuses before a network policy is told, and our rule stays where it is', () => {
  const { blocked, insertions } = planOpenings(forward('ACCEPT', REJECT, CALICO, OURS));
  expect(blocked).toEqual([{ chain: 'FORWARD', why: expect.stringContaining('before rules of a network policy') }]);
  expect(insertions).toEqual([]);
});

test('our rule may stand behind what refuses nothing: nobody fights for the first place', () => {
  expect(inserted(forward('DROP', DOCKER, OURS))).toEqual([]);
  expect(inserted(forward('DROP', DOCKER, 'DOCKER-USER -j DROP', OURS))).toEqual([1]);
});

test('rules of ours that are two, changed or in the wrong place are replaced by one', () => {
  for (const of of [
    forward('DROP', OURS, OURS),
    forward('DROP', OURS.replace('ACCEPT', 'RETURN')),
    forward('DROP', REJECT, OURS),
  ]) {
    const { removals, insertions } = planOpenings(of);
    expect(removals.length).toBe(
      of.get('FORWARD')!.rules.filter((rule) => rule.join(' ').includes('unbounded')).length,
    );
    expect(insertions).toEqual([{ chain: 'FORWARD', position: 1 }]);
  }
});

const rule = fc.constantFrom(
  ...[DOCKER, REJECT, CALICO, OURS, ...KUBERNETES, 'DOCKER-USER -j DROP', 'FORWARD -i eth0 -j ACCEPT', 'INPUT -j DROP'],
);
const applied = (of: FilterTable, { removals, insertions }: ReturnType<typeof planOpenings>): FilterTable =>
  new Map(
    [...of].map(([chain, { rules, ...rest }]) => {
      const left: FilterRule[] = [...rules];
      for (const removal of removals.filter((one) => one.chain === chain))
        left.splice(
          left.findIndex((one) => one.join(' ') === removal.rule.join(' ')),
          1,
        );
      for (const { position } of insertions.filter((one) => one.chain === chain)) left.splice(position - 1, 0, OPENING);
      return [chain, { ...rest, rules: left }];
    }),
  );

test('whatever stands there: once opened nothing is left to do, and closed it is as it was without us', () => {
  fc.assert(
    fc.property(fc.array(rule, { maxLength: 8 }), fc.constantFrom('ACCEPT', 'DROP'), (rules, policy) => {
      const of = forward(policy, ...rules);
      const open = applied(of, planOpenings(of));
      expect(planOpenings(open)).toMatchObject({ removals: [], insertions: [] });
      const closed = applied(open, planClosings(open));
      for (const chain of OPENED_CHAINS)
        expect(closed.get(chain)!.rules).toEqual(
          of.get(chain)!.rules.filter((one) => !one.join(' ').includes('unbounded')),
        );
    }),
  );
});
