import { describe, expect, test } from 'vitest';
import { firewallRows } from './firewalls.ts';
import { parseLegacyTable } from './legacy.ts';
import { type BaseChain, parseRuleset } from './ruleset.ts';
import { tailscaleRows } from './tailscale.ts';

const chain = (given: Partial<BaseChain>): BaseChain => ({
  family: 'inet',
  table: 'admin',
  name: 'forward',
  hook: 'forward',
  isLegacy: false,
  policy: 'accept',
  refusals: 0,
  leadsTo: [],
  ...given,
});
const adviceFor = (given: Partial<BaseChain>): string | undefined => firewallRows([chain(given)])[0]?.advice;

describe('what is done about a chain that refuses packets', () => {
  test.each<[string, Partial<BaseChain>, string]>([
    [
      'of iptables: we do it',
      { family: 'ip', table: 'filter', name: 'FORWARD', policy: 'drop', refusals: 2 },
      'hook forward, policy drop, 2 rules drop or reject: the agent lets the overlay pass; what rules refuse by address, port, set or state stays refused',
    ],
    [
      'of iptables at output: a person does it',
      { family: 'ip6', table: 'filter', name: 'OUTPUT', hook: 'output', policy: 'drop' },
      'hook output, policy drop: accept there the ports of the tunnels (docs/operations.md#ports-and-interfaces), and what goes out by ',
    ],
    [
      'of a table of its own',
      { policy: 'drop' },
      'hook forward, policy drop: accept there what comes in or goes out by cbr0, unbounded0, unbounded-echo, ',
    ],
    [
      'of a table that refuses by rules alone',
      { hook: 'input', refusals: 1 },
      'hook input, policy accept, 1 rule drops or rejects: see that the rules spare the overlay, or accept there ',
    ],
    [
      'of firewalld',
      { table: 'firewalld', refusals: 1 },
      'the agent gives firewalld a zone and policies for the overlay',
    ],
    [
      'with iptables’ names in a table that is not its own',
      { family: 'inet', table: 'filter', name: 'FORWARD', policy: 'drop' },
      'accept there',
    ],
  ])('%s', (_, given, advice) => {
    expect(adviceFor(given)).toContain(advice);
  });

  test('chains that refuse nothing, ours and kube-proxy’s are not told', () => {
    expect(
      [
        {},
        { table: 'unbounded', refusals: 3 },
        { table: 'unbounded_pods', policy: 'drop' },
        { table: 'kube-proxy', refusals: 1 },
      ].map(adviceFor),
    ).toEqual([undefined, undefined, undefined, undefined]);
  });
});

describe('iptables-legacy-save', () => {
  const printed = (rules: string): BaseChain[] =>
    parseLegacyTable(
      'ip',
      'filter',
      `# Generated\n*filter\n:INPUT ACCEPT [0:0]\n:FORWARD DROP [0:0]\n:OUTPUT ACCEPT [0:0]\n:banned - [0:0]\n${rules}\nCOMMIT\n`,
    );
  const refusals = (rules: string): number[] => printed(rules).map((one) => one.refusals);

  test('has policies, and rules that refuse, also in chains to which others lead', () => {
    expect(printed('').map(({ name, hook, policy }) => [name, hook, policy])).toEqual([
      ['INPUT', 'input', 'accept'],
      ['FORWARD', 'forward', 'drop'],
      ['OUTPUT', 'output', 'accept'],
    ]);
    expect(
      refusals(
        '-A INPUT -j banned\n-A INPUT -g banned\n-A banned -s 192.0.2.1/32 -j REJECT --reject-with icmp-port-unreachable\n-A OUTPUT -j DROP',
      ),
    ).toEqual([1, 0, 1]);
  });

  test('a comment is no target, and chains in a circle end', () => {
    expect(
      refusals(
        '-A INPUT -m comment --comment "may -j DROP \\" it -j DROP" -j ACCEPT\n-A INPUT -j banned\n-A banned -j banned',
      ),
    ).toEqual([0, 0, 0]);
  });
});

test('what is no list of nft is refused', () => {
  expect(() => parseRuleset('{}')).toThrow('nft printed no list of objects');
});

describe('Tailscale', () => {
  const traces = { isRunning: false, chains: [], ruleTables: ['local', 'main', '252'] };
  test('is not told where there is none', () => {
    expect(tailscaleRows(traces)).toEqual([]);
  });
  test('is told with its chains and its table, also where they are left of one that does not run', () => {
    const chains = [chain({ leadsTo: ['ts-forward', 'DOCKER'] }), chain({ hook: 'input', leadsTo: ['ts-input'] })];
    expect(tailscaleRows({ ...traces, chains, ruleTables: ['52', 'main'] })).toEqual([
      {
        name: 'Tailscale',
        state: 'left',
        advice:
          'its chains ts-forward, ts-input drop packets from 100.64.0.0/10 that come by other devices than its own, its routing table 52 is asked before ours: choose pod CIDRs outside of the addresses of your tailnet and its subnet routes',
      },
    ]);
    expect(tailscaleRows({ ...traces, isRunning: true })[0]).toMatchObject({
      state: 'runs',
      advice: expect.stringMatching(/^choose pod CIDRs/),
    });
  });
});
