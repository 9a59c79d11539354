import { type BaseChain, type ChainRules, followChains, type Hook } from './ruleset.ts';

/** What `iptables-legacy-save` prints of one table, as base chains. */

const HOOKS: Readonly<Record<string, Hook>> = { FORWARD: 'forward', INPUT: 'input', OUTPUT: 'output' };

/** Of a rule without the texts of comments. */
const targetOf = (rule: string): string | undefined =>
  / -[jg] (\S+)/.exec(rule.replaceAll(/"(?:[^"\\]|\\.)*"/g, '""').replaceAll(/--comment \S+/g, ''))?.[1];

const isRefusal = (target: string): boolean => target === 'DROP' || target === 'REJECT';

export const parseLegacyTable = (family: string, table: string, printed: string): BaseChain[] => {
  const lines = printed.split('\n');
  const chains = new Map<string, ChainRules>();
  for (const line of lines) {
    const [, name, rule] = /^-A (\S+)(.*)$/.exec(line) ?? [];
    if (name === undefined) continue;
    const target = targetOf(rule!);
    const { refusals, targets } = chains.get(name) ?? { refusals: 0, targets: [] };
    if (target === undefined) continue;
    chains.set(
      name,
      isRefusal(target) ? { refusals: refusals + 1, targets } : { refusals, targets: [...targets, target] },
    );
  }
  return lines.flatMap((line) => {
    const [, name, policy] = /^:(\S+) (\S+)/.exec(line) ?? [];
    const hook = name === undefined ? undefined : HOOKS[name];
    if (!hook) return [];
    const rules = followChains(name!, chains);
    return [{ family, table, name: name!, hook, policy: policy!.toLowerCase(), isLegacy: true, ...rules }];
  });
};
