/** Something that an operator should know; it never stops the rest. */
export interface Problem {
  /** CamelCase, the reason of a condition or an Event. */
  readonly reason: string;
  readonly message: string;
}
