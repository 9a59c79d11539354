import { readFileSync } from 'node:fs';

import type { Logger } from '@unbounded/telemetry';

const LEAST_BYTES = 32;

/** @throws Error that says the valid input */
const read = (file: string): Buffer => {
  const secret = readFileSync(file);
  if (secret.length < LEAST_BYTES)
    throw new Error(`${file} holds ${secret.length} bytes: must hold at least ${LEAST_BYTES} bytes`);
  return secret;
};

/**
 * The secret of links, read for every handshake: replicas that run on come to a new one by themselves, as soon as their file
 * has it. One that cannot be read leaves the one of before. @throws Error when the first reading fails
 */
export const linkSecret = (file: string, logger: Logger): (() => Buffer) => {
  let secret = read(file);
  let problem: string | undefined;
  return () => {
    try {
      secret = read(file);
      problem = undefined;
    } catch (error) {
      const { message } = error as Error;
      if (message !== problem)
        logger.error({ file, reason: message }, 'cannot read the link secret; keeping the previous one');
      problem = message;
    }
    return secret;
  };
};
