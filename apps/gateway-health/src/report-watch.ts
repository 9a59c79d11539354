import type { GatewayPoolNode } from '@unbounded/crds';

/**
 * Since when a gateway's report has been as it is, by our own clock that only goes forward. What the report says of its time is
 * the clock of another machine, which may be set wrong.
 */
export interface ReportWatch {
  /** Takes the objects as they are now. */
  observe(objects: readonly GatewayPoolNode[]): void;
  of(name: string): Observation;
}

interface Observation {
  /** Milliseconds since the report last changed, or since we first saw it. */
  readonly silentMs: number;
  /** A change was seen: before that nobody knows how old the report is. */
  readonly isConfirmed: boolean;
}

interface Seen {
  readonly stamp: string;
  readonly sinceMs: number;
  readonly isConfirmed: boolean;
}

/** Another object of the same name begins anew. */
const stampOf = ({ metadata, status }: GatewayPoolNode): string => `${metadata.uid ?? ''} ${status?.lastUpdated ?? ''}`;

/** @param elapsed milliseconds on a clock that only goes forward */
export const createReportWatch = (elapsed: () => number): ReportWatch => {
  let seen = new Map<string, Seen>();
  return {
    observe(objects) {
      const next = new Map<string, Seen>();
      for (const object of objects) {
        const { name } = object.metadata;
        const before = seen.get(name);
        const stamp = stampOf(object);
        const isSame = before?.stamp === stamp;
        next.set(name, isSame ? before : { stamp, sinceMs: elapsed(), isConfirmed: before !== undefined });
      }
      seen = next;
    },
    of(name) {
      const entry = seen.get(name);
      return { silentMs: entry ? elapsed() - entry.sinceMs : 0, isConfirmed: entry?.isConfirmed ?? false };
    },
  };
};
