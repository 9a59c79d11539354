import { existsSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { type TunnelUnit, tunnelUnits } from '@unbounded/keeper-protocol';
import type { Logger } from '@unbounded/telemetry';
import { diffDevice, openUserspaceDevice } from '@unbounded/wireguard';
import { createTryTo } from './failures.ts';
import { createKnownUnits, createRejectionReport } from './known-units.ts';
import type { Command } from './process.ts';
import { RELAY_PROCESS, relayCommand, type RelayFiles } from './relay/command.ts';
import { createRelayUnitCheck } from './relay/unit-check.ts';
import { createProcessReport } from './process-report.ts';
import { createSupervisor } from './supervisor.ts';

export interface KeeperOptions {
  readonly unitsDir: string;
  readonly pidsDir: string;
  /** In which rejected units are reported. */
  readonly rejectedFile: string;
  /** In which the processes are reported. */
  readonly processesFile: string;
  /** Path of wireguard-go. */
  readonly program: string;
  readonly relay: RelayFiles;
  readonly logger: Logger;
}

/** Gives a process its key, port and peers. False while it does not answer yet. */
const configure = async (unit: TunnelUnit): Promise<boolean> => {
  try {
    await using device = openUserspaceDevice(unit.device);
    const { privateKeyFile, listenPort, peers } = unit;
    const privateKey = readFileSync(privateKeyFile, 'utf8').trim();
    const change = diffDevice(await device.get(), { privateKey, listenPort, peers });
    if (change) await device.apply(change);
    return true;
  } catch (error) {
    const { reason } = error as { reason?: string };
    if (reason === 'absent' || reason === 'unreachable') return false;
    throw error;
  }
};

/** -f: in the foreground, so that the pid is the process. */
const tunnelCommand = (program: string, device: string): Command => ({
  program,
  args: ['-f', device],
  env: { PATH: '/usr/bin:/bin', LOG_LEVEL: 'error' },
});

export interface Keeper {
  /** Looks once: starts what is missing, ends what is not wanted, configures what has just started. `nowMs` never goes back. */
  tend(nowMs: number): Promise<void>;
  /** What runs: tunnels by their devices, and the relay's proxies. */
  running(): string[];
}

/** Supervises a process for each unit of a folder, and one for the relay's proxies. */
export const createKeeper = (options: KeeperOptions): Keeper => {
  const { unitsDir, pidsDir, rejectedFile, processesFile, program, relay, logger } = options;
  const supervisor = createSupervisor(pidsDir, logger);
  const report = createRejectionReport(rejectedFile, logger);
  const reportProcesses = createProcessReport(processesFile, supervisor, logger);
  const readKnown = createKnownUnits(unitsDir, tunnelUnits);
  const checkRelayUnit = createRelayUnitCheck(relay.unitFile);
  supervisor.adopt(performance.now());
  let hasRelay = supervisor.names().includes(RELAY_PROCESS);

  const tendUnit = async (unit: TunnelUnit, nowMs: number): Promise<void> => {
    const kept = await supervisor.tend(unit.device, tunnelCommand(program, unit.device), nowMs);
    if (kept && !kept.isSetUp) kept.isSetUp = await configure(unit);
  };

  const tryTo = createTryTo(logger, 'process');

  return {
    async tend(nowMs) {
      const { units: wanted, keeps, refused } = readKnown();
      report([...refused, ...checkRelayUnit()]);
      // A directory that is gone asks for nothing else than before.
      if (existsSync(dirname(relay.unitFile))) hasRelay = existsSync(relay.unitFile);
      for (const unit of wanted.values()) await tryTo(unit.device, nowMs, () => tendUnit(unit, nowMs));
      if (hasRelay) await tryTo(RELAY_PROCESS, nowMs, () => supervisor.tend(RELAY_PROCESS, relayCommand(relay), nowMs));
      const isKept = (name: string): boolean => (name === RELAY_PROCESS ? hasRelay : keeps(name));
      for (const name of supervisor.names())
        if (!wanted.has(name) && !isKept(name)) await tryTo(name, nowMs, async () => supervisor.stop(name, nowMs));
      reportProcesses(new Set([...wanted.keys(), ...(hasRelay ? [RELAY_PROCESS] : []), ...supervisor.names()]));
    },
    running: () => supervisor.running(),
  };
};
