import { rmSync } from 'node:fs';
import { openApiServerPool } from './api-server-pool.ts';
import { POOL_VARIABLE } from './pool-variable.ts';
import type { TestProject } from 'vitest/node';

/** Set-up of a vitest project whose test files borrow API servers: they start when a file asks, and end with the run. */
export const setup = async ({ config }: TestProject): Promise<() => Promise<void>> => {
  const path = config.env[POOL_VARIABLE] as string;
  rmSync(path, { force: true }); // of a run that was killed: pids come again in a namespace of its own
  const pool = await openApiServerPool(path);
  return () => pool.stop();
};
