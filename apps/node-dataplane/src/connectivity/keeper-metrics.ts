import { keeperProcesses, type KeeperProcesses } from '@unbounded/keeper-protocol';
import type { Metrics } from '@unbounded/telemetry';

/** Metrics of node-keeper's processes: it has no port of its own, and writes what runs into a file. */

const KINDS = ['wireguard', 'relay'] as const;
const kindOf = (name: string): (typeof KINDS)[number] => (name === 'relay' ? 'relay' : 'wireguard');

/** Undefined: no keeper that writes it runs here. */
const read = (file: string): KeeperProcesses['processes'] | undefined => {
  try {
    return keeperProcesses.read(file).processes;
  } catch {
    return undefined;
  }
};

export const watchKeeper = (metrics: Metrics, file: string): Disposable => {
  const processes = metrics.gauge({
    name: 'unbounded_keeper_processes',
    help: 'Processes that node-keeper is to run at this node, by kind and whether they run, as of its last report. No series: there is no report of this boot, or node-keeper is of a version without one.',
    labels: ['kind', 'state'],
  });
  const starts = metrics.counter({
    name: 'unbounded_keeper_process_starts_total',
    help: 'Processes that node-keeper started since it was started itself, of those that it still keeps.',
    labels: ['kind'],
  });
  return metrics.onRender(() => {
    for (const metric of [processes, starts]) metric.reset(); // these are somebody else's
    const all = read(file);
    if (!all) return;
    for (const kind of KINDS) {
      const ofKind = Object.entries(all).flatMap(([name, one]) => (kindOf(name) === kind ? [one] : []));
      const running = ofKind.filter(({ isRunning }) => isRunning).length;
      processes.set({ kind, state: 'running' }, running);
      processes.set({ kind, state: 'stopped' }, ofKind.length - running);
      starts.inc(
        { kind },
        ofKind.reduce((sum, one) => sum + one.starts, 0),
      );
    }
  });
};
