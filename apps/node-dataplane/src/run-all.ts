/** Runs every step, one after the other, also behind one that fails. @throws AggregateError of all that failed, whose message has theirs */
export const runAll = async (steps: readonly (() => unknown)[]): Promise<void> => {
  const errors: Error[] = [];
  for (const step of steps)
    try {
      await step();
    } catch (error) {
      errors.push(error as Error);
    }
  if (errors.length > 0) throw new AggregateError(errors, errors.map(({ message }) => message).join('; '));
};
