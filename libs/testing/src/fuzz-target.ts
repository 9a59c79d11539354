/** What a `*.fuzz.ts` beside a codec exports as `target`; tools/fuzz runs it with inputs that coverage guides. */
export interface FuzzTarget {
  /**
   * Runs one input. It throws for what must not happen, with whatever error: what the code refuses as its documentation
   * says is caught in here.
   */
  readonly run: (input: Uint8Array) => void;
  /** Valid inputs, from which the search starts. */
  readonly seeds: readonly Uint8Array[];
  /** Pieces that mean something to the code: magic numbers, keywords. */
  readonly tokens?: readonly Uint8Array[];
  /** Bytes of the longest input. */
  readonly maxBytes: number;
}
