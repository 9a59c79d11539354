import type { Family } from '@unbounded/ip';
import type { EchoPlan } from '@unbounded/topology';

/** The addresses to which a node's own echoes come back, by family: one each, whatever gateway they went through. */
export const ownEchoAddresses = (echoes: readonly EchoPlan[] = []): Map<Family, string> =>
  new Map(echoes.map(({ family, localAddress }) => [family, localAddress]));
