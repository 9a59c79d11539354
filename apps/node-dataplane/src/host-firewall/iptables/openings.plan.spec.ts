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
    ':WEAVE-NPC - [0:0]',
    ':KUBE-FIREWALL - [0:0]',
    ...rules.map((rule) => `-A ${rule}`),
  );
const OURS = `FORWARD -m mark --mark 0x80/0x80 -m comment --comment "unbounded: belongs to the overlay" -j ACCEPT`;
const DOCKER = 'FORWARD -j DOCKER-USER';
const REJECT = 'FORWARD -j REJECT --reject-with icmp-port-unreachable';
const CALICO = 'FORWARD -m comment --comment "cali:abc" -j cali-FORWARD';
const NEW = 'FORWARD -m conntrack --ctstate NEW,RELATED -m comment --comment "the rest" -j DROP';
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
    forward('ACCEPT', 'FORWARD -j RETURN'),
  ])
    expect(planOpenings(of)).toEqual({ refusals: [], blocked: [], removals: [], insertions: [] });
  expect(planOpenings(forward('ACCEPT', OURS)).removals).toEqual([{ chain: 'FORWARD', rule: OPENING }]);
});

test('what refused a moment ago is opened as if its policy did still', () => {
  const isFormer = (chain: string): boolean => chain === 'FORWARD';
  const nothing = { refusals: [], blocked: [], removals: [] };
  expect(planOpenings(forward('ACCEPT', CALICO, DOCKER), isFormer)).toEqual({
    ...nothing,
    insertions: [{ chain: 'FORWARD', position: 3 }],
  });
  expect(planOpenings(forward('ACCEPT', OURS, DOCKER), isFormer)).toEqual({ ...nothing, insertions: [] });
  expect(planOpenings(table(), isFormer)).toEqual({ ...nothing, insertions: [] });
});

test.each([
  ['a destination', 'FORWARD -d 169.254.169.254/32 -j DROP'],
  ['a source', 'FORWARD -s 100.65.0.0/16 ! -d 10.0.0.0/8 -j REJECT --reject-with icmp-port-unreachable'],
  ['a port', 'INPUT -p tcp -m tcp --dport 22 -j DROP'],
  ['a set', 'INPUT -m set --match-set f2b-sshd src -j DROP'],
  ['devices', 'FORWARD -i docker0 -o eth0 -j DROP'],
  ['not being of a device', 'FORWARD ! -i docker0 -j DROP'],
  ['belonging to no connection', 'FORWARD -m conntrack --ctstate INVALID -j DROP'],
  ['what a chain says that only some reach', 'FORWARD -o weave -j DOCKER-USER'],
  ['what a program behind a queue says', 'FORWARD -j NFQUEUE --queue-num 1'],
])('what is refused for %s stays refused', (_, rule) => {
  const drops = 'DOCKER-USER -j DROP';
  expect(planOpenings(forward('ACCEPT', rule, drops)).insertions).toEqual([]);
  // Where the policy refuses the rest our rule stands behind it.
  if (rule.startsWith('FORWARD')) expect(inserted(forward('DROP', rule, drops))).toEqual([2]);
});

test.each([
  ['a policy of DROP', forward('DROP', 'FORWARD -i eth0 -j ACCEPT'), 'policy DROP', 2],
  ['a rule that rejects', forward('ACCEPT', 'FORWARD -i eth0', REJECT), 'rule "-j REJECT', 2],
  ['one for new connections', forward('ACCEPT', NEW), 'rule "-m conntrack', 1],
  ['a rule of a chain that all reach', forward('DROP', DOCKER, 'DOCKER-USER -j DROP'), 'rule "-j DOCKER-USER"', 1],
  ['leaving the chain for its policy', forward('DROP', 'FORWARD -j RETURN', REJECT), 'rule "-j RETURN"', 1],
  ['going on in another chain for good', forward('DROP', 'FORWARD -g DOCKER-USER'), 'rule "-g DOCKER-USER"', 1],
])('%s refuses what nobody has accepted, and our rule goes before it', (_, of, why, position) => {
  const { refusals, blocked, insertions } = planOpenings(of);
  expect(refusals).toEqual([{ chain: 'FORWARD', why: expect.stringContaining(why) }]);
  expect([blocked, insertions]).toEqual([[], [{ chain: 'FORWARD', position }]]);
  expect(planClosings(of)).toMatchObject({ blocked: refusals, removals: [], insertions: [] });
});

test.each(['-i eth0 -j DROP', '! -i lo -j DROP', '! -i lo -m conntrack ! --ctstate RELATED,ESTABLISHED -j REJECT'])(
  'of what comes to the node, the device by which it comes, or does not come, is no reason: %s',
  (rule) => {
    const of = table(':INPUT ACCEPT [0:0]', '-A INPUT -i lo -j ACCEPT', `-A INPUT ${rule}`);
    expect(planOpenings(of).insertions).toEqual([{ chain: 'INPUT', position: 2 }]);
  },
);

test.each([
  ['-m conntrack ! --ctstate RELATED,ESTABLISHED', true],
  ['-m state ! --state ESTABLISHED', true],
  ['-m conntrack --ctstate INVALID,NEW', true],
  ['-m conntrack ! --ctstate NEW', false],
  ['-m conntrack ! --ctstate NEW,INVALID', false],
  ['-m state --state INVALID', false],
  ['-m conntrack --ctstatus ASSURED', false],
  ['-m conntrack ! --ctstatus EXPECTED', false],
])('a state in which new connections are too is no reason, and another one is: %s', (match, isBroad) => {
  expect(inserted(forward('ACCEPT', `FORWARD ${match} -j DROP`))).toEqual(isBroad ? [1] : []);
});

test('chains that lead into each other have an end', () => {
  expect(planOpenings(forward('ACCEPT', DOCKER, 'DOCKER-USER -j DOCKER-USER')).refusals).toEqual([]);
});

test('network policies, kube-proxy and kubelet decide before our rule: also when they come later', () => {
  expect(inserted(forward('DROP', CALICO, DOCKER))).toEqual([3]);
  expect(inserted(forward('DROP', CALICO, OURS))).toEqual([]);
  expect(inserted(forward('DROP', OURS, CALICO))).toEqual([2]);
  expect(inserted(forward('ACCEPT', CALICO, REJECT))).toEqual([2]);
  expect(inserted(forward('DROP', 'FORWARD -o weave -j WEAVE-NPC', 'FORWARD -o weave -j DROP'))).toEqual([3]);
  expect(inserted(forward('DROP', OURS, ...KUBERNETES))).toEqual([2]);
});

test('what refuses before a network policy is told, and our rule stays where it is', () => {
  const { blocked, insertions } = planOpenings(forward('ACCEPT', REJECT, CALICO, OURS));
  expect(blocked).toEqual([{ chain: 'FORWARD', why: expect.stringContaining('before rules of a network policy') }]);
  expect(insertions).toEqual([]);
});

test('our rule may stand anywhere before what refuses: nobody fights for a place', () => {
  expect(inserted(forward('DROP', DOCKER, OURS))).toEqual([]);
  expect(inserted(forward('DROP', OURS, DOCKER))).toEqual([]);
  expect(inserted(forward('DROP', DOCKER, 'DOCKER-USER -j DROP', OURS))).toEqual([1]);
});

test('what refuses packets for what they are comes to stand before our rule again, however it came behind it', () => {
  const ufw = 'FORWARD -j DOCKER-USER';
  for (const denial of [
    'DOCKER-USER -s 10.0.0.9/32 -j DROP',
    'DOCKER-USER -m conntrack --ctstate INVALID -j DROP',
    'DOCKER-USER -p tcp -j TARPIT',
  ]) {
    expect(inserted(forward('DROP', OURS, 'FORWARD -i eth0 -j ACCEPT', ufw, denial))).toEqual([3]);
    expect(inserted(forward('DROP', ufw, denial, OURS, 'FORWARD -i eth0 -j ACCEPT'))).toEqual([]);
  }
  expect(inserted(forward('DROP', OURS, 'FORWARD -s 10.0.0.9/32 -j REJECT', 'FORWARD -j LOG'))).toEqual([3]);
  // While nothing refuses, a rule that is moved could be missed.
  const reloading = forward('ACCEPT', OURS, 'FORWARD -s 10.0.0.9/32 -j REJECT');
  expect(planOpenings(reloading, () => true).insertions).toEqual([{ chain: 'INPUT', position: 1 }]);
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
