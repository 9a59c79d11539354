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

/** Undefined: the text has no filter table. Lines of no known form are left out: packet counters, comments. */
export const parseFilterTable = (text: string): FilterTable | undefined => {
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

const valueOf = (rule: FilterRule, ...options: readonly string[]): string | undefined => {
  const at = rule.findIndex((word, index) => options.includes(word) && rule[index - 1] !== '--comment');
  return at < 0 ? undefined : rule[at + 1];
};

/** Where a rule sends a packet: a verdict or another chain. Undefined: it only counts. */
export const targetOf = (rule: FilterRule): string | undefined => valueOf(rule, '-j', '-g');

export const commentOf = (rule: FilterRule): string | undefined => {
  const at = rule.indexOf('--comment');
  return at < 0 ? undefined : rule[at + 1];
};
