/** Something that lives as long as the process: a manager, a server, a loop. */
export interface HostPart {
  readonly name: string;
  /** Starts the part; readiness is told by `isReady`. */
  start(): Promise<void> | void;
  /** Ends within the time that the host leaves; called once, in the reverse order of starting. */
  stop(): Promise<void> | void;
  /** Not set: ready as soon as it has started. */
  readonly isReady?: boolean;
  /** Rejects when the part cannot go on: the process drains and ends with code 1. */
  readonly failed?: Promise<never>;
}
