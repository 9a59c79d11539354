/**
 * What a scenario has to report is the last line that it prints. A process that ends before a pipe has taken all of it leaves half a line.
 */
export const printReport = (report: unknown): Promise<void> =>
  new Promise((resolve) => void process.stdout.write(`\n${JSON.stringify(report)}\n`, () => resolve()));
