import type { Logger } from '@unbounded/telemetry';

type Problems = readonly { readonly reason: string; readonly message: string }[];

/** Logs problems when they change, not at every pass. */
export const createProblemLog = (logger: Logger): ((problems: Problems) => void) => {
  let told = '';
  return (problems) => {
    const text = problems.map(({ message }) => message).join('\n');
    if (text !== told) for (const { reason, message } of problems) logger.warn({ reason }, message);
    told = text;
  };
};
