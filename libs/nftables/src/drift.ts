import { compileRule } from './expression.codec.ts';
import { type ObservedChain, type ObservedSet, type ObservedTable, sameInstructions } from './observed.codec.ts';
import { type Element, elementsOf, layoutOf } from './set.codec.ts';
import { namesInUse, withSetNames } from './staging.ts';
import type { ChainSpec, SetSpec, TableFamily, TableSpec } from './table.ts';
import { hookNumber } from './table.codec.ts';

/** A pair without a last key is an interval of one. */
const elementText = ({ key, isEnd, lastKey = key }: Element): string =>
  `${isEnd ? '<' : ''}${key.join('.')}-${lastKey.join('.')}`;

/** nft adds an end at address zero before the first interval; it means nothing. */
const meaningful = (elements: readonly Element[]): Set<string> =>
  new Set(elements.filter(({ key, isEnd }) => !isEnd || key.some((byte) => byte !== 0)).map(elementText));

const setDrift = (wanted: SetSpec, found: ObservedSet | undefined): string | undefined => {
  if (!found) return `set ${wanted.name} is missing`;
  const { length, flags, fields } = layoutOf(wanted);
  if (found.keyLength !== length || found.flags !== flags || found.fields.join() !== fields.join())
    return `set ${wanted.name} is of another type`;
  if (wanted.dynamic || wanted.timed) return undefined;
  const [want, have] = [meaningful(elementsOf(wanted)), meaningful(found.elements)];
  return want.size === have.size && [...want].every((element) => have.has(element))
    ? undefined
    : `set ${wanted.name} has other elements`;
};

const baseText = (base: ObservedChain['base']): string =>
  base ? JSON.stringify({ ...base, devices: [...base.devices].sort() }) : 'none';

/** Whether the kernel's chain is at the hook that is wanted, with that priority and policy. */
export const hasSameBase = (family: TableFamily, { base }: ChainSpec, found: Pick<ObservedChain, 'base'>): boolean => {
  const hook = base && {
    type: base.type,
    hook: hookNumber(family, base.hook),
    priority: base.priority,
    policy: base.policy ?? 'accept',
    devices: base.devices ?? [],
  };
  return baseText(hook) === baseText(found.base);
};

const chainDrift = (table: TableSpec, wanted: ChainSpec, found: ObservedChain | undefined): string | undefined => {
  if (!found) return `chain ${wanted.name} is missing`;
  if (!hasSameBase(table.family, wanted, found)) return `chain ${wanted.name} has another hook, priority or policy`;
  if (wanted.rules.length !== found.rules.length)
    return `chain ${wanted.name} has ${found.rules.length} rules instead of ${wanted.rules.length}`;
  const odd = wanted.rules.findIndex((rule, index) => {
    const other = found.rules[index];
    return (
      !other ||
      other.comment !== rule.comment ||
      !sameInstructions(compileRule(table.family, rule.expressions), other.instructions)
    );
  });
  return odd < 0 ? undefined : `rule ${odd + 1} of chain ${wanted.name} differs`;
};

/** The first thing in which the kernel's table is not the wanted one; undefined when it is. */
export const findDrift = (spec: TableSpec, found: ObservedTable | undefined): string | undefined => {
  if (!found) return `table ${spec.family} ${spec.name} is missing`;
  if (found.isDormant) return `table ${spec.family} ${spec.name} is dormant`;
  const wanted = withSetNames(spec, namesInUse(spec, new Set(found.sets.map(({ name }) => name))));
  const sets = new Map(found.sets.map((set) => [set.name, set]));
  const chains = new Map(found.chains.map((chain) => [chain.name, chain]));
  for (const set of wanted.sets ?? []) {
    const drift = setDrift(set, sets.get(set.name));
    if (drift !== undefined) return drift;
  }
  for (const chain of wanted.chains) {
    const drift = chainDrift(wanted, chain, chains.get(chain.name));
    if (drift !== undefined) return drift;
  }
  const [counters, wantedCounters] = [found.counters.map(({ name }) => name), wanted.counters ?? []];
  if (counters.toSorted().join() !== wantedCounters.toSorted().join())
    return `table ${wanted.name} has the counters [${counters.join(', ')}] instead of [${wantedCounters.join(', ')}]`;
  const extra =
    sets.size !== (wanted.sets ?? []).length ? 'sets' : chains.size !== wanted.chains.length ? 'chains' : undefined;
  return extra === undefined ? undefined : `table ${wanted.name} has ${extra} that nobody wants`;
};
