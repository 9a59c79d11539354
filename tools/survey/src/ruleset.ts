/** What `nft -j list ruleset` prints: base chains at the hooks that the overlay passes, and what in them refuses packets. */

const HOOKS = ['forward', 'input', 'output'] as const;
export type Hook = (typeof HOOKS)[number];

/** A chain at which packets arrive, of nf_tables or of x_tables. */
export interface BaseChain {
  readonly family: string;
  readonly table: string;
  readonly name: string;
  readonly hook: Hook;
  readonly isLegacy: boolean;
  readonly policy: string;
  /** Number of rules that drop or reject, in it and in the chains to which it leads. */
  readonly refusals: number;
  /** All chains to which it leads. */
  readonly leadsTo: readonly string[];
}

/** What the rules of a chain do, of whatever form they are. */
export interface ChainRules {
  readonly refusals: number;
  readonly targets: readonly string[];
}

/** @param chains by name; those that lead to each other in a circle are counted once */
export const followChains = (
  name: string,
  chains: ReadonlyMap<string, ChainRules>,
): Pick<BaseChain, 'refusals' | 'leadsTo'> => {
  const seen = new Set([name]);
  let refusals = 0;
  for (const one of seen) {
    const rules = chains.get(one);
    refusals += rules?.refusals ?? 0;
    for (const target of rules?.targets ?? []) seen.add(target);
  }
  return { refusals, leadsTo: [...seen].slice(1) };
};

interface NftChain {
  readonly family: string;
  readonly table: string;
  readonly name: string;
  readonly hook?: string;
  readonly policy?: string;
}
interface NftRule {
  readonly family: string;
  readonly table: string;
  readonly chain: string;
  readonly expr: readonly unknown[];
}
interface NftObject {
  readonly chain?: NftChain;
  readonly rule?: NftRule;
  readonly map?: { readonly family: string; readonly table: string; readonly name: string; readonly elem?: unknown };
}

const tableOf = ({ family, table }: { readonly family: string; readonly table: string }): string =>
  `${family} ${table}`;

interface Verdicts {
  readonly refuses: boolean;
  readonly targets: readonly string[];
  /** Names of maps that hold further verdicts. */
  readonly maps: readonly string[];
}

const NOTHING: Verdicts = { refuses: false, targets: [], maps: [] };

const joined = (all: readonly Verdicts[]): Verdicts => ({
  refuses: all.some(({ refuses }) => refuses),
  targets: all.flatMap(({ targets }) => targets),
  maps: all.flatMap(({ maps }) => maps),
});

const verdictOf = (key: string, value: unknown): Verdicts => {
  if (key === 'drop' || key === 'reject') return { ...NOTHING, refuses: true };
  const { target, type, name, data } = (value ?? {}) as Record<string, unknown>;
  if (key === 'jump' || key === 'goto') return { ...NOTHING, targets: [String(target)] };
  // REJECT of iptables, which has no other form in nf_tables.
  if (key === 'xt') return { ...NOTHING, refuses: type === 'target' && name === 'REJECT' };
  if (key === 'vmap' && typeof data === 'string') return { ...NOTHING, maps: [data.replace(/^@/, '')] };
  return verdictsIn(value);
};

/** Verdicts are anywhere inside a rule's statements: alone, or in the elements of a map. */
const verdictsIn = (value: unknown): Verdicts => {
  if (Array.isArray(value)) return joined(value.map(verdictsIn));
  if (value === null || typeof value !== 'object') return NOTHING;
  return joined(Object.entries(value).map(([key, inner]) => verdictOf(key, inner)));
};

type Tables = Map<string, Map<string, ChainRules>>;

const rulesByTable = (objects: readonly NftObject[]): Tables => {
  const maps = new Map(
    objects.flatMap(({ map }) => (map ? [[`${tableOf(map)} ${map.name}`, verdictsIn(map.elem)]] : [])),
  );
  const tables: Tables = new Map();
  for (const { rule } of objects) {
    if (!rule) continue;
    const direct = verdictsIn(rule.expr);
    const { refuses, targets } = joined([
      direct,
      ...direct.maps.map((name) => maps.get(`${tableOf(rule)} ${name}`) ?? NOTHING),
    ]);
    const chains = tables.get(tableOf(rule)) ?? new Map<string, ChainRules>();
    tables.set(tableOf(rule), chains);
    const before = chains.get(rule.chain) ?? { refusals: 0, targets: [] };
    chains.set(rule.chain, {
      refusals: before.refusals + Number(refuses),
      targets: [...before.targets, ...targets],
    });
  }
  return tables;
};

const isHook = (hook: string | undefined): hook is Hook => HOOKS.some((one) => one === hook);

/** @throws Error when the text is no such list */
export const parseRuleset = (printed: string): BaseChain[] => {
  const { nftables } = JSON.parse(printed) as { readonly nftables?: readonly NftObject[] };
  if (!Array.isArray(nftables)) throw new Error('nft printed no list of objects');
  const objects = nftables as readonly NftObject[];
  const tables = rulesByTable(objects);
  return objects.flatMap(({ chain }) => {
    if (!chain || !isHook(chain.hook)) return [];
    const { family, table, name, hook, policy = 'accept' } = chain;
    const rules = followChains(name, tables.get(tableOf(chain)) ?? new Map());
    return [{ family, table, name, hook, policy, isLegacy: false, ...rules }];
  });
};
