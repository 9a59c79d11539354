import { describe, expect, test } from 'vitest';
import { planFor } from '../testdata.ts';
import { planFirewall } from './firewall.plan.ts';

const rulesOf = (node: string, chain: string, protocol?: Parameters<typeof planFor>[1]) =>
  planFirewall(planFor(node, protocol)).chains.find(({ name }) => name === chain)!.rules;

describe('the table', () => {
  test('is ours alone, and its chains accept by default: others decide after them', () => {
    const table = planFirewall(planFor('w1'));
    expect([table.family, table.name]).toEqual(['inet', 'unbounded']);
    expect(table.chains.map(({ base }) => base?.policy)).toEqual(['accept', 'accept', 'accept']);
    expect(JSON.stringify(table)).not.toMatch(/"do":"accept"/);
  });

  test('drops only what claims to be a pod', () => {
    for (const { expressions } of planFirewall(planFor('w1')).chains.flatMap(({ rules }) => rules)) {
      if (expressions.some((part) => 'do' in part && part.do === 'drop'))
        expect(expressions[0]).toMatchObject({ match: 'set', set: expect.stringMatching(/^(pods|plain)_/) as string });
    }
    const plan = { ...planFor('w1'), manageCni: false };
    expect(JSON.stringify(planFirewall(plan))).not.toContain('"drop"');
  });

  test('masquerades after kube-proxy', () => {
    const chain = planFirewall(planFor('w1')).chains.find(({ name }) => name === 'postrouting');
    expect(chain?.base?.priority).toBeGreaterThan(100);
  });

  test('masquerades pods only, in either family: what the host or somebody else sends keeps its address', () => {
    const masquerading = rulesOf('w1', 'postrouting').filter(({ expressions }) =>
      expressions.some((part) => 'do' in part && part.do === 'masquerade'),
    );
    expect(masquerading.map(({ expressions }) => expressions.filter((part) => 'set' in part))).toEqual(
      ['ip', 'ip6'].map((family) => [
        { match: 'set', field: `${family}.saddr`, op: '==', set: `pods_${family}` },
        { match: 'set', field: `${family}.daddr`, op: '!=', set: `own_address_${family}` },
      ]),
    );
  });

  test('what goes into the overlay is never masqueraded: each of its devices returns first', () => {
    const devices = rulesOf('g1', 'postrouting', 'WireGuard').flatMap(({ expressions }) =>
      expressions.flatMap((part) => ('key' in part && part.key === 'oifname' ? [part.value] : [])),
    );
    expect(devices).toEqual(['cbr0', 'unbounded0', 'wg51820', 'wg51822']);
    const last = rulesOf('g1', 'postrouting').findLastIndex(({ comment }) =>
      comment?.startsWith('stays in the overlay'),
    );
    const first = rulesOf('g1', 'postrouting').findIndex(({ expressions }) =>
      expressions.some((part) => 'do' in part && part.do === 'masquerade'),
    );
    expect(first).toBeGreaterThan(last);
  });

  test('segments are clamped on every device that makes packets larger, and not on the bridge', () => {
    const comments = rulesOf('w1', 'forward', 'GENEVE').map(({ comment }) => comment);
    expect(comments).toEqual(['segments fit the path: geneve0', 'segments fit the path: unbounded0']);
  });

  test('sets hold the blocks of their family only', () => {
    const plan = planFor('w1');
    const { sets } = planFirewall({
      ...plan,
      masquerade: { sources: ['100.65.0.0/16', 'fd00::/48'], exceptTo: ['fd01::/48'] },
    });
    expect(Object.fromEntries(sets!.map(({ name, elements }) => [name, elements]))).toEqual({
      pods_ip: ['100.65.0.0/16'],
      pods_ip6: ['fd00::/48'],
      own_address_ip: [],
      own_address_ip6: ['fd01::/48'],
      plain_ip: [],
      plain_ip6: [],
      also_plain_ip: [],
      also_plain_ip6: [],
    });
  });
});
