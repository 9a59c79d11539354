/** What `iptables-save -t filter` prints: chains with their policies, and rules as the words of a command. */

interface FilterChain {
  /** Undefined: a chain that is only jumped to. */
  readonly policy?: string;
  readonly rules: readonly FilterRule[];
}

/** Without `-A CHAIN`. */
export type FilterRule = readonly string[];

export type FilterTable = ReadonlyMap<string, FilterChain>;

const WORD = /"((?:[^"\\]|\\.)*)"|(\S+)/g;

/** Words as a shell reads them, of what iptables itself quotes: double quotes, and a backslash before these two. */
const wordsOf = (line: string): string[] =>
  [...line.matchAll(WORD)].map(([, quoted, plain]) => quoted?.replaceAll(/\\(.)/g, '$1') ?? plain!);

/** As iptables-nft-save says that the kernel's table has chains or rules which it cannot print: what it prints then is not what is in force. */
const INCOMPATIBLE = /^# Table [`']filter' .*incompatible/m;

/** Undefined: the text has no filter table, or not all of it. Lines of no known form are left out: comments. */
export const parseFilterTable = (text: string): FilterTable | undefined => {
  if (INCOMPATIBLE.test(text)) return undefined;
  const lines = text.split('\n');
  const begin = lines.indexOf('*filter');
  if (begin < 0) return undefined;
  const chains = new Map<string, { policy?: string; rules: FilterRule[] }>();
  for (const line of lines.slice(begin + 1)) {
    if (line === 'COMMIT') break;
    const declared = /^:(\S+) (\S+)/.exec(line);
    if (declared) {
      const [, name, policy] = declared;
      chains.set(name!, { ...(policy !== '-' && { policy: policy! }), rules: [] });
      continue;
    }
    const [command, name, ...rule] = wordsOf(line);
    if (command === '-A') chains.get(name!)?.rules.push(rule);
  }
  return chains;
};

/** Where the target begins: `-j` or `-g`, and not as the text of a comment. */
const targetAt = (rule: FilterRule): number =>
  rule.findIndex((word, index) => (word === '-j' || word === '-g') && rule[index - 1] !== '--comment');

/** Where a rule sends a packet: a verdict or another chain. Undefined: it only counts. */
export const targetOf = (rule: FilterRule): string | undefined => {
  const at = targetAt(rule);
  return at < 0 ? undefined : rule[at + 1];
};

/** It does not come back from the chain to the next rule. */
export const isGoto = (rule: FilterRule): boolean => rule[targetAt(rule)] === '-g';

/** What it matches; iptables-save prints the target and its options last. */
export const withoutTarget = (rule: FilterRule): FilterRule => {
  const at = targetAt(rule);
  return at < 0 ? rule : rule.slice(0, at);
};

export const commentOf = (rule: FilterRule): string | undefined => {
  const at = rule.indexOf('--comment');
  return at < 0 ? undefined : rule[at + 1];
};
