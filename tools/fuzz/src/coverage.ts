import { Session } from 'node:inspector';

/** Which blocks of our code ran, and how often: V8's own coverage, of this thread, without instrumenting anything. */

interface Script {
  readonly url: string;
  readonly scriptId: string;
  readonly functions: readonly {
    readonly ranges: readonly { readonly startOffset: number; readonly endOffset: number; readonly count: number }[];
  }[];
}

/** 1, 2, 3, 4 to 7, 8 to 15, …: a loop that runs once more is news, one that runs 1,000 or 1,001 times is not. */
const bucket = (count: number): number => (count < 4 ? count : 2 + Math.floor(Math.log2(count)));

export interface Coverage {
  /**
   * What ran since the last call: a text for each block and bucket of counts. Blocks that did not run count too, in functions
   * that did: V8 names no block that ran as often as the one around it.
   */
  take(): string[];
}

/** @param isOurs by the file's URL; must be called before the code is loaded */
export const startCoverage = (isOurs: (url: string) => boolean): Coverage => {
  const session = new Session();
  session.connect();
  // Answers to a session of the same thread come before post returns.
  const post = (method: string, parameters: object = {}): unknown => {
    let answer: unknown;
    session.post(method, parameters, (error, result) => {
      if (error) throw error;
      answer = result;
    });
    return answer;
  };
  post('Profiler.enable');
  post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
  return {
    take: () => {
      const { result } = post('Profiler.takePreciseCoverage') as { readonly result: readonly Script[] };
      return result
        .filter(({ url }) => isOurs(url))
        .flatMap(({ scriptId, functions }) =>
          functions
            .filter(({ ranges }) => ranges[0]!.count > 0)
            .flatMap(({ ranges }) =>
              ranges.map(
                ({ startOffset, endOffset, count }) => `${scriptId}:${startOffset}-${endOffset}x${bucket(count)}`,
              ),
            ),
        );
    },
  };
};
