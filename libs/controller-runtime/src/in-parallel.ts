/**
 * Does the work for every item, at most `limit` at a time. All items are tried; then the errors are thrown together.
 * @throws AggregateError
 */
export const inParallel = async <T>(
  items: readonly T[],
  limit: number,
  work: (item: T) => Promise<void>,
): Promise<void> => {
  const rest = items.values(); // shared by the workers: each takes the next
  const errors: unknown[] = [];
  const worker = async (): Promise<void> => {
    for (const item of rest) await work(item).catch((error: unknown) => errors.push(error));
  };
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, worker));
  if (errors.length > 0)
    throw new AggregateError(errors, `${errors.length} of ${items.length} failed: ${String(errors[0])}`);
};
