/** A place in a history of the view: `HISTORY-SEQUENCE`. */
export interface Position {
  readonly history: string;
  /** Of the first view 1, and one more with each update. */
  readonly sequence: number;
}

const PATTERN = /^(.{1,40})-([1-9]\d{0,14})$/;

export const positionText = ({ history, sequence }: Position): string => `${history}-${sequence}`;

export const parsePosition = (text: string): Position | undefined => {
  const [, history, sequence] = PATTERN.exec(text) ?? [];
  return history === undefined ? undefined : { history, sequence: Number(sequence) };
};

/**
 * Whether who is at `known` has had the update to `position`: it may come from a replica that was further on. Positions of different histories
 * have no order.
 */
export const includes = (known: string, position: string): boolean => {
  if (known === position) return true;
  const [a, b] = [parsePosition(known), parsePosition(position)];
  return a !== undefined && a.history === b?.history && b.sequence <= a.sequence;
};
