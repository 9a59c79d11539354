/** What one turn of both sides measured, in the row's unit. */
export interface Round {
  readonly ours: number;
  readonly theirs: number;
}

/** Rounds of a benchmark; more of them make a quiet number on a busy machine. */
export const ROUNDS = Number(process.env['ROUNDS'] ?? 9);

export const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;

/**
 * One row of a Markdown table: both medians, and median, least and greatest of the rounds' ratios. A ratio is taken
 * within a round, whose two sides saw the same machine.
 */
export const row = (name: string, rounds: readonly Round[], target?: string): string => {
  const ratios = rounds.map(({ ours, theirs }) => ours / theirs);
  const number = (value: number): string => (value >= 1000 ? value.toFixed(0) : value.toFixed(2));
  const cells = [
    name,
    number(median(rounds.map(({ ours }) => ours))),
    number(median(rounds.map(({ theirs }) => theirs))),
    median(ratios).toFixed(2),
    `${Math.min(...ratios).toFixed(2)} - ${Math.max(...ratios).toFixed(2)}`,
    ...(target === undefined ? [] : [target]),
  ];
  return `| ${cells.join(' | ')} |`;
};
