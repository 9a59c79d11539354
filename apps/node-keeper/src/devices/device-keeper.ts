import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type DeviceUnit, deviceUnits, problemText } from '@unbounded/keeper-protocol';
import type { Logger } from '@unbounded/telemetry';
import { createTryTo } from '../failures.ts';
import type { Keeper } from '../keeper.ts';
import { createKnownUnits, createRejectionReport } from '../known-units.ts';
import { createSupervisor, type Supervisor } from '../supervisor.ts';
import { deviceCommand, type DevicePrograms, isStarted, podOf, processName, type StartedUnit } from './command.ts';
import { createPodNetworks } from './pod-networks.ts';
import { createStates, type DeviceStates } from './states.ts';

/**
 * The keeper of tailnet devices: for each unit the network of its pod, and then the process of its device. No process is started before
 * the network stands, which is what keeps packets for the tailnet from leaving by another interface.
 */

export interface DeviceKeeperOptions extends DevicePrograms {
  readonly unitsDir: string;
  readonly pidsDir: string;
  /** What has become of units. */
  readonly statesDir: string;
  /** In which rejected units are reported. */
  readonly rejectedFile: string;
  readonly logger: Logger;
  /** A pod that takes longer is looked at again when it is done: nobody waits for it. Tests wait for each. */
  readonly longestLookMs?: number;
}

export const deviceFolders = (
  runFolder: string,
): Pick<DeviceKeeperOptions, 'unitsDir' | 'pidsDir' | 'statesDir' | 'rejectedFile'> => ({
  unitsDir: join(runFolder, 'units'),
  pidsDir: join(runFolder, 'pids'),
  statesDir: join(runFolder, 'states'),
  rejectedFile: join(runFolder, 'rejected.json'),
});

const LONGEST_LOOK_MS = 1000;

/** Starts the jobs of pods side by side, one of each at a time, and waits until they are done, or for the longest look. */
const createJobs = (longestLookMs: number) => {
  const busy = new Set<string>();
  return async (jobs: ReadonlyMap<string, () => Promise<void>>): Promise<void> => {
    const started = [...jobs].flatMap(([podUID, job]) => {
      if (busy.has(podUID)) return [];
      busy.add(podUID);
      return [job().finally(() => busy.delete(podUID))];
    });
    const over = new AbortController();
    const late = sleep(longestLookMs, undefined, { signal: over.signal }).catch(() => {});
    await Promise.race([Promise.all(started), late]);
    over.abort();
  };
};

/** Ends processes of the pod that were started with other arguments; of all, without a name. @returns whether they are gone */
const stopOthers = (supervisor: Supervisor, podUID: string, name: string | undefined, nowMs: number): boolean =>
  supervisor
    .names()
    .filter((one) => podOf(one) === podUID && one !== name)
    .map((one) => supervisor.stop(one, nowMs))
    .every(Boolean);

const createTending =
  (supervisor: Supervisor, states: DeviceStates, programs: DevicePrograms) =>
  /** @throws Error when it cannot be run */
  async (unit: StartedUnit, nowMs: number): Promise<void> => {
    const { podUID } = unit;
    const state = states.get(podUID)!;
    try {
      const kept = await supervisor.tend(processName(unit), deviceCommand(unit, programs), nowMs);
      if (!kept || kept.isSetUp) return;
      kept.isSetUp = true;
      states.set(podUID, { ...state, starts: state.starts + 1 });
    } catch (error) {
      states.set(podUID, { ...state, problem: problemText((error as Error).message) });
      throw error;
    }
  };

export const createDeviceKeeper = (options: DeviceKeeperOptions): Keeper => {
  const { unitsDir, pidsDir, statesDir, rejectedFile, logger, podStart } = options;
  const supervisor = createSupervisor(pidsDir, logger);
  const report = createRejectionReport(rejectedFile, logger);
  const readKnown = createKnownUnits(unitsDir, deviceUnits);
  const states = createStates(statesDir, logger);
  const networks = createPodNetworks({ podStart, states, logger });
  const tendProcess = createTending(supervisor, states, options);
  supervisor.adopt(performance.now());

  const tend = async (unit: DeviceUnit, nowMs: number): Promise<void> => {
    await networks.ensure(unit, nowMs);
    const name = isStarted(unit) ? processName(unit) : undefined;
    const isAlone = stopOthers(supervisor, unit.podUID, name, nowMs);
    // The device may run while a change of its network fails.
    if (isStarted(unit) && isAlone && networks.hasAny(unit)) await tendProcess(unit, nowMs);
  };
  const tidy = async (podUID: string, nowMs: number): Promise<void> => {
    if (stopOthers(supervisor, podUID, undefined, nowMs)) await networks.remove(podUID, nowMs);
  };
  const tryTo = createTryTo(logger, 'pod');
  const runJobs = createJobs(options.longestLookMs ?? LONGEST_LOOK_MS);

  return {
    async tend(nowMs) {
      const { units, keeps, refused } = readKnown();
      report(refused);
      states.writeUnwritten();
      const known = new Set([...states.pods(), ...supervisor.names().map(podOf)]);
      const gone = [...known].filter((pod) => !units.has(pod) && !keeps(pod));
      const ofUnits = [...units.values()].map(
        (unit) => [unit.podUID, () => tryTo(unit.podUID, nowMs, () => tend(unit, nowMs))] as const,
      );
      const ofGone = gone.map((pod) => [pod, () => tryTo(pod, nowMs, () => tidy(pod, nowMs))] as const);
      await runJobs(new Map([...ofUnits, ...ofGone]));
    },
    running: () => supervisor.running(),
  };
};
