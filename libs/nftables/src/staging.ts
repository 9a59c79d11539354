import { layoutOf } from './set.codec.ts';
import type { Expression, SetSpec, TableSpec } from './table.ts';
import { SET_INTERVAL } from './wire.codec.ts';

/**
 * The kernel looks up sets of intervals in a copy that it shows only at the very end of a transaction, after the transaction's rules are
 * in force: those of pairs (nft_set_pipapo) in every version, those of addresses (nft_set_rbtree) in newer ones; seen on 6.18. A rule that
 * comes together with such a set finds it empty for as long as the transaction is being worked off, some milliseconds. So these sets come
 * in a transaction of their own before, beside those that are in use: under another of their names.
 */

const SUFFIXES = ['', '_b', '_c'] as const;

const isShownLate = (set: SetSpec): boolean => (layoutOf(set).flags & SET_INTERVAL) !== 0;

const lateSets = ({ sets = [] }: TableSpec): SetSpec[] => sets.filter(isShownLate);

/** By the set's own name: the one to give it. */
export type SetNames = ReadonlyMap<string, string>;

const rename = (expression: Expression, names: SetNames): Expression =>
  'match' in expression &&
  (expression.match === 'pair' || expression.match === 'set' || expression.match === 'ct-address-set')
    ? { ...expression, set: names.get(expression.set) ?? expression.set }
    : expression;

export const withSetNames = (table: TableSpec, names: SetNames): TableSpec =>
  names.size === 0
    ? table
    : {
        ...table,
        sets: (table.sets ?? []).map((set) => ({ ...set, name: names.get(set.name) ?? set.name })),
        chains: table.chains.map((chain) => ({
          ...chain,
          rules: chain.rules.map((rule) => ({
            ...rule,
            expressions: rule.expressions.map((expression) => rename(expression, names)),
          })),
        })),
      };

/** Names that are free, beside those that are taken; undefined: there is none left for one of them. */
export const freeNames = (table: TableSpec, taken: ReadonlySet<string>): SetNames | undefined => {
  const names = new Map<string, string>();
  for (const { name } of lateSets(table)) {
    const suffix = SUFFIXES.find((candidate) => !taken.has(name + candidate));
    if (suffix === undefined) return undefined;
    names.set(name, name + suffix);
  }
  return names;
};

/** Names by which they are there. */
export const namesInUse = (table: TableSpec, found: ReadonlySet<string>): SetNames =>
  new Map(
    lateSets(table).map(({ name }) => {
      const suffix = SUFFIXES.find((candidate) => found.has(name + candidate)) ?? '';
      return [name, name + suffix];
    }),
  );

/** The table with these names, in two parts: what comes first, and what refers to it. */
export const inParts = (table: TableSpec): { readonly staged: readonly SetSpec[]; readonly rest: TableSpec } => ({
  staged: lateSets(table),
  rest: { ...table, sets: (table.sets ?? []).filter((set) => !isShownLate(set)) },
});
