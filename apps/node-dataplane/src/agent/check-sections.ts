import { NFT_GUARD_TABLE, nftTableOf, ROUTE_PROTOCOLS } from '@unbounded/config/ownership';
import { type BaseChain, findCollisions, GUARD_CHAINS } from '../kernel/base-chains.ts';
import type { SectionType } from '../section.port.ts';

/** Whether the agent's sections can be told apart in the kernel, in files and in reports. */

const NAME = /^[a-z][a-z0-9]*$/;

const twice = <T>(values: readonly T[]): T[] => [
  ...new Set(values.filter((value, at) => values.indexOf(value) !== at)),
];

const nameProblems = (names: readonly string[]): string[] => [
  ...names
    .filter((name) => !NAME.test(name))
    .map((name) => `section name "${name}" must be lower-case letters and digits that begin with a letter`),
  ...names
    .filter((name) => nftTableOf(name) === NFT_GUARD_TABLE)
    .map((name) => `section name "${name}" must not be that of the nftables table ${NFT_GUARD_TABLE}`),
  ...twice(names).map((name) => `section name "${name}" must not be listed twice`),
];

const protocolProblems = (protocols: readonly number[]): string[] => {
  const { first, last } = ROUTE_PROTOCOLS;
  return [
    ...protocols
      .filter((protocol) => protocol < first || protocol > last)
      .map((protocol) => `routeProtocol ${protocol} must be within ${first}..${last}`),
    ...twice(protocols).map((protocol) => `routeProtocol ${protocol} must not belong to two sections`),
  ];
};

export type ListedSection = Pick<SectionType, 'name' | 'routeProtocol' | 'baseChains'>;

/** In words; none: all is well. */
export const findSectionProblems = (types: readonly ListedSection[]): string[] => {
  const chains = new Map<string, readonly BaseChain[]>([[NFT_GUARD_TABLE, Object.values(GUARD_CHAINS)]]);
  for (const { name, baseChains = [] } of types) chains.set(nftTableOf(name), baseChains);
  return [
    ...nameProblems(types.map(({ name }) => name)),
    ...protocolProblems(types.flatMap(({ routeProtocol }) => routeProtocol ?? [])),
    ...findCollisions(chains),
  ];
};

/** @throws Error naming every problem */
export const checkSections = (types: readonly ListedSection[]): void => {
  const problems = findSectionProblems(types);
  if (problems.length > 0) throw new Error(`sections of the agent: ${problems.join('; ')}`);
};
