import { workerData } from 'node:worker_threads';
import { serveThread, tell } from '../../thread/serve.ts';
import { type Call, peerId, type PeerReport, type Told, type WorkerSettings } from './messages.ts';
import { openGroupStore } from '../../data-path/open-group-store.ts';
import type { GroupKernel } from './group-kernel.port.ts';
import { createProber } from './prober.ts';

/** A thread of its own for probes: whatever the agent is busy with, their timers are not late. */

/** Ahead of everything that is not as urgent. */
const WISH = { isRealtime: true, niceness: -20 } as const;

const settings = workerData as WorkerSettings;

/** Changes of one turn of the loop, in one message. */
const createChangeQueue = () => {
  const peers = new Map<string, PeerReport>();
  const gone = new Set<string>();
  const flush = (): void => {
    tellGroups(); // first: who hears of the peers reads them
    if (peers.size + gone.size > 0)
      tell({ type: 'changed', peers: [...peers.values()], gone: [...gone] } satisfies Told);
    peers.clear();
    gone.clear();
  };
  return {
    flush,
    add(changed: readonly PeerReport[], removed: readonly string[]): void {
      if (peers.size + gone.size === 0) setImmediate(flush);
      for (const id of removed) {
        peers.delete(id);
        gone.add(id);
      }
      for (const peer of changed) {
        const previous = peers.get(peerId(peer))?.previous ?? peer.previous;
        peers.set(peerId(peer), { ...peer, ...(previous === undefined ? {} : { previous }) });
      }
    },
  };
};

const tellGroups = (): void => {
  const groups = prober.changedGroups();
  if (groups) tell({ type: 'groups', groups } satisfies Told);
};

const kernel: GroupKernel | undefined = settings.groups && openGroupStore(settings.groups, settings.netnsFd);
const changes = createChangeQueue();
const prober = createProber(settings, kernel, (peers, gone) => changes.add(peers, gone));

serveThread<Call>(WISH, {
  async handle(call) {
    if (call.type === 'apply') return await prober.apply(call.plan);
    if (call.type === 'removeStale') await prober.removeStale();
    else prober.setKeys(call.keys);
    return [];
  },
  flush: () => changes.flush(),
  measure() {
    const measured = prober.measured();
    if (measured) tell({ type: 'measured', ...measured } satisfies Told);
    tellGroups();
  },
  async stop() {
    await prober.stop();
    await kernel?.close();
  },
});
