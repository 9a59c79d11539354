/** As docs/status.md, and the aggregator: two pushes of 10 s were missed, and the next one is late. */
const OLD_MS = 25_000;

/** Whether a report counts no more: the view says that its node is Unknown. */
export const isOldReport = (ageMs: number): boolean => ageMs >= OLD_MS;
