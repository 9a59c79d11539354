import { setPriority } from 'node:os';
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import type { FromWorker, PathReport, PathWorkerSettings, ToWorker } from './messages.ts';
import { createWatcher } from './watcher.ts';

/** A thread of its own for the choice between direct and relay: whatever the agent is busy with, no move is late. */

const MEASURE_EVERY_MS = 1000;
/**
 * Ahead of everything that is not as urgent, and behind the thread of health probes: datagrams from outside come here, and
 * a flood of them must not make gateways look dead. On Linux this is the priority of the calling thread alone.
 */
const NICENESS = -10;

const port = parentPort as MessagePort;
const tell = (message: FromWorker): void => port.postMessage(message);

try {
  setPriority(0, NICENESS);
} catch {
  // Without the privilege probes share the processor with everybody.
}

/** Changes of one turn of the loop, in one message, in their order. */
const createChangeQueue = () => {
  let paths: PathReport[] = [];
  let gone: string[] = [];
  const flush = (): void => {
    if (paths.length + gone.length > 0) tell({ type: 'changed', paths, gone });
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
const measuring = setInterval(() => {
  const counts = watcher.measured();
  if (counts) tell({ type: 'measured', ...counts });
}, MEASURE_EVERY_MS);

const obey = async (message: ToWorker): Promise<void> => {
  const { id } = message;
  const problems = message.type === 'apply' ? await watcher.apply(message.plan) : [];
  if (message.type === 'stop') {
    clearInterval(measuring);
    await watcher.stop();
  }
  changes.flush(); // whoever waits for the plan knows the paths then
  tell({ type: 'done', id, problems });
  if (message.type === 'stop') port.close();
};

/** One call after the other: a plan that comes while another is taken waits. */
let obeying: Promise<void> = Promise.resolve();
port.on('message', (message: ToWorker) => {
  obeying = obeying
    .then(() => obey(message))
    .catch((error: unknown) => tell({ type: 'failed', id: message.id, error: (error as Error).message }));
});
