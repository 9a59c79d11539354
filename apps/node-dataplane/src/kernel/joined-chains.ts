import type { ChainSpec } from '@unbounded/nftables';
import { placeNameOf } from './base-chains.ts';

/**
 * Chains of one table at one place of a hook, called from one base chain in the order in which they are listed. Of several base chains the
 * kernel runs the one first that was registered last (nf_hook_entries_grow), which is no order to rely on. A jump costs no more than a base
 * chain: a packet took as long either way.
 */

type Base = NonNullable<ChainSpec['base']>;
type BaseChainSpec = ChainSpec & { readonly base: Base };

const hasBase = (chain: ChainSpec): chain is BaseChainSpec => chain.base !== undefined;
const placeOf = ({ base }: BaseChainSpec): string =>
  [base.type, base.hook, base.priority, base.policy ?? 'accept', ...(base.devices ?? [])].join(' ');

const accepts = ({ rules }: ChainSpec): boolean =>
  rules.some(({ expressions }) => expressions.some((part) => 'do' in part && part.do === 'accept'));

/** @throws RangeError naming a chain whose "accept" would keep the packet from the chains that follow */
const joined = (members: readonly BaseChainSpec[]): ChainSpec[] => {
  const [{ base }] = members as [BaseChainSpec];
  const accepting = members.find(accepts);
  if (accepting)
    throw new RangeError(
      `chain ${accepting.name} must end with "return" instead of "accept": others follow at ${placeNameOf(base)}`,
    );
  return [
    ...members.map(({ name, rules }) => ({ name, rules })),
    {
      name: placeNameOf(base),
      base,
      rules: members.map(({ name }) => ({ expressions: [{ do: 'jump', chain: name }] })),
    },
  ];
};

/** The same rules with one base chain at each place. A chain that is alone at its place stays as it is. */
export const joinBaseChains = (chains: readonly ChainSpec[]): ChainSpec[] => {
  const places = Map.groupBy(chains.filter(hasBase), placeOf);
  return [
    ...chains.filter((chain) => !hasBase(chain)),
    ...[...places.values()].flatMap((members) => (members.length === 1 ? members : joined(members))),
  ];
};
