import { setPriority } from 'node:os';
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { groupKey, nexthopGroup } from '@unbounded/bpf-maps';
import { openPinnedMap } from '@unbounded/libbpf-ts';
import { createRouteSocket } from '@unbounded/netlink';
import { type FromWorker, peerId, type PeerReport, type ToWorker, type WorkerSettings } from './messages.ts';
import type { GroupKernel } from './group-kernel.port.ts';
import { createMapGroups } from '../data-path/ebpf/map-groups.ts';
import { createNexthopGroups } from '../data-path/netlink/nexthop-groups.ts';
import { createProber } from './prober.ts';

/** A thread of its own for probes: whatever the agent is busy with, their timers are not late. */

const MEASURE_EVERY_MS = 1000;
/** Ahead of everything that is not as urgent; on Linux this is the priority of the calling thread alone. */
const NICENESS = -20;

const port = parentPort as MessagePort;
const settings = workerData as WorkerSettings;
const tell = (message: FromWorker): void => port.postMessage(message);

try {
  setPriority(0, NICENESS);
} catch {
  // Without the privilege probes share the processor with everybody.
}

/** Changes of one turn of the loop, in one message. */
const createChangeQueue = () => {
  const peers = new Map<string, PeerReport>();
  const gone = new Set<string>();
  const flush = (): void => {
    if (peers.size + gone.size > 0) tell({ type: 'changed', peers: [...peers.values()], gone: [...gone] });
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

const openGroups = ({ groups, netnsFd }: WorkerSettings): GroupKernel | undefined => {
  if (groups === undefined) return undefined;
  if (groups !== 'routes') return createMapGroups(openPinnedMap(groups.mapPin, groupKey, nexthopGroup));
  return createNexthopGroups(createRouteSocket(netnsFd === undefined ? {} : { netnsFd }));
};

const kernel = openGroups(settings);
const changes = createChangeQueue();
const prober = createProber(settings, kernel, (peers, gone) => changes.add(peers, gone));
const measuring = setInterval(() => {
  const measured = prober.measured();
  if (measured) tell({ type: 'measured', ...measured });
}, MEASURE_EVERY_MS);

const obey = async (message: ToWorker): Promise<void> => {
  const { id } = message;
  if (message.type === 'apply') {
    const problems = await prober.apply(message.plan);
    changes.flush(); // whoever waits for the plan knows the states then
    return tell({ type: 'done', id, problems });
  }
  if (message.type === 'removeStale') await prober.removeStale();
  else if (message.type === 'setKeys') prober.setKeys(message.keys);
  else {
    clearInterval(measuring);
    await prober.stop();
    await kernel?.close();
  }
  tell({ type: 'done', id, problems: [] });
  if (message.type === 'stop') port.close();
};

port.on('message', (message: ToWorker) => {
  obey(message).catch((error: unknown) => tell({ type: 'failed', id: message.id, error: (error as Error).message }));
});
