/** One log of what several processes said, by time. */

/** As our own programs write it: one JSON object a line. */
const TIME = /"time":"([^"]+)"/;

/**
 * The lines of all logs in the order of their times, each with the label of its log before it. A line without a time (of
 * a stack, of a program that is not ours) stays behind the line before it.
 */
export const mergedLog = (logs: readonly { readonly label: string; readonly text: string }[]): string =>
  logs
    .flatMap(({ label, text }) => {
      let time = 0;
      return text
        .split('\n')
        .filter(Boolean)
        .map((line) => {
          const said = Date.parse(TIME.exec(line)?.[1] ?? '');
          if (!Number.isNaN(said)) time = said;
          return { time, line: label === '' ? line : `${label}  ${line}` };
        });
    })
    .toSorted((a, b) => a.time - b.time)
    .map(({ line }) => `${line}\n`)
    .join('');
