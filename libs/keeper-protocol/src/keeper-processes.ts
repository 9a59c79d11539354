import { z } from 'zod';
import { protocolFile } from './protocol-file.ts';

/** The processes that node-keeper is to keep running on a node, for the agent's metrics. */

const MOST_PROCESSES = 4096;

const processOfKeeper = z.object({
  isRunning: z.boolean(),
  /** How often it was started since the keeper was; 0: it was found running. */
  starts: z.int().min(0),
});

const schema = z.object({
  /** By interface, or `relay`. */
  processes: z
    .record(z.string().regex(/^[\w-]{1,32}$/, 'must be 1 to 32 letters, digits, - or _'), processOfKeeper)
    .refine((processes) => Object.keys(processes).length <= MOST_PROCESSES, `must be at most ${MOST_PROCESSES}`),
});

export const keeperProcesses = protocolFile({
  name: 'processes of node-keeper',
  schema,
  maxBytes: 1 << 20,
  remedy: 'the agent is older than node-keeper: upgrade node-dataplane',
});
export type KeeperProcesses = ReturnType<typeof keeperProcesses.parse>;
