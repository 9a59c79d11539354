/** What keeps a rule or a pool from doing what it says; it never affects another object. */
export interface EgressProblem {
  /** The condition that it makes False. */
  readonly condition: 'Accepted' | 'AddressesAssigned' | 'OwnersElected' | 'PodsCovered';
  /** CamelCase. */
  readonly reason: string;
  /** Path in the object: `spec.rules[0].egressip`. */
  readonly field: string;
  readonly value: string;
  /** What is the matter and what to do: goes on after field and value. */
  readonly remedy: string;
}

/** A sentence with field, value and remedy. */
export const problemText = ({ field, value, remedy }: EgressProblem): string => `${field} "${value}": ${remedy}`;
