import { workerData } from 'node:worker_threads';
import { serveThread, tell } from '../../thread/serve.ts';
import type { Call, PathReport, PathWorkerSettings, Told } from './messages.ts';
import { createWatcher } from './watcher.ts';

/** A thread of its own for the choice between direct and relay: whatever the agent is busy with, no move is late. */

/**
 * Ahead of everything that is not as urgent, and behind the thread of health probes: datagrams from outside come here, and
 * a flood of them must not make gateways look dead. On Linux this is the priority of the calling thread alone.
 */
const WISH = { niceness: -10 } as const;

/** Changes of one turn of the loop, in one message, in their order. */
const createChangeQueue = () => {
  let paths: PathReport[] = [];
  let gone: string[] = [];
  const flush = (): void => {
    if (paths.length + gone.length > 0) tell({ type: 'changed', paths, gone } satisfies Told);
    [paths, gone] = [[], []];
  };
  const due = (): void => {
    if (paths.length + gone.length === 0) setImmediate(flush);
  };
  return {
    flush,
    moved(report: PathReport): void {
      due();
      paths.push(report);
    },
    gone(id: string): void {
      flush(); // a path that comes again afterwards is a new one
      due();
      gone.push(id);
    },
  };
};

const changes = createChangeQueue();
const watcher = createWatcher({
  ...(workerData as PathWorkerSettings),
  onMoved: (report) => changes.moved(report),
  onGone: (id) => changes.gone(id),
});

serveThread<Call>(WISH, {
  handle: async ({ plan }) => await watcher.apply(plan),
  flush: () => changes.flush(),
  measure() {
    const counts = watcher.measured();
    if (counts) tell({ type: 'measured', ...counts } satisfies Told);
  },
  stop: () => watcher.stop(),
});
