import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import type { EchoPlan, ProbePlan } from '@unbounded/topology';

/** The agent's thread that probes, as the agent starts it (apps/node-dataplane, messages.ts). */
const file = new URL('../../../apps/node-dataplane/src/connectivity/health/health.worker.ts', import.meta.url);

const PROBE_PORT = 9997;
export const PROBE_EVERY_MS = 100;

/** A node as those that probe it know it. */
export interface Probed {
  readonly node: string;
  readonly publicKey: string;
  readonly address: string;
}

interface ThreadPlan {
  readonly probes: readonly ProbePlan[];
  readonly echoes: readonly EchoPlan[];
  readonly echoDevice?: { readonly name: string; readonly index: number };
}

/** Counts of what was sent and came back since the thread began. */
interface Counts {
  sent: number;
  received: number;
  echoesSent: number;
  echoesReturned: number;
}

interface Told extends Partial<Counts> {
  readonly type: string;
  readonly problems?: readonly { readonly message: string }[];
  readonly error?: string;
}

export interface ProbingThread {
  readonly counts: Readonly<Counts>;
  apply(plan: ThreadPlan): Promise<void>;
  /** With the namespace still there. */
  stop(): Promise<void>;
}

export const startProbing = (privateKey: string, netnsFd: number, stateFile: string): ProbingThread => {
  const counts: Counts = { sent: 0, received: 0, echoesSent: 0, echoesReturned: 0 };
  let answered = (_told: Told): void => undefined;
  const workerData = { keys: { current: privateKey }, port: PROBE_PORT, stateFile, netnsFd };
  const worker = new Worker(file, { name: 'health', workerData });
  worker.on('error', (error) => {
    throw error;
  });
  worker.on('message', (told: Told) => {
    if (told.type === 'done' || told.type === 'failed') return answered(told);
    for (const name of Object.keys(counts) as (keyof Counts)[]) counts[name] += told[name] ?? 0;
  });
  const call = async (message: object): Promise<void> => {
    const { promise, resolve } = Promise.withResolvers<Told>();
    answered = resolve;
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, no window
    worker.postMessage({ id: 1, ...message });
    const { error, problems } = await promise;
    const why = error ?? problems?.map(({ message: problem }) => problem).join('; ');
    if (why) throw new Error(`the thread that probes: ${why}`);
  };
  return {
    counts,
    apply: (plan) => call({ type: 'apply', plan: { ...plan, groups: [], mtuBytes: 1500 } }),
    async stop() {
      const ended = once(worker, 'exit');
      await call({ type: 'stop' });
      await ended;
    },
  };
};

export const probeOf = ({ node, publicKey, address }: Probed, localAddress: string): ProbePlan => ({
  ...{ node, publicKey, family: 4, localAddress, address },
  ...{ intervalMs: PROBE_EVERY_MS, detectMultiplier: 3 },
});
