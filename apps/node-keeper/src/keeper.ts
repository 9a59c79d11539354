import { readFileSync } from 'node:fs';
import type { Logger } from '@unbounded/telemetry';
import { diffDevice, openUserspaceDevice } from '@unbounded/wireguard';
import { findProcess, startProcess, type TunnelProcess } from './process.ts';
import { readUnits, type Unit } from './unit.ts';

export interface KeeperOptions {
  readonly unitsFolder: string;
  readonly pidsFolder: string;
  /** Path of wireguard-go. */
  readonly program: string;
  readonly logger: Logger;
}

/** Milliseconds. A process that keeps dying is given longer and longer rests. */
const FIRST_REST_MS = 50;
const LONGEST_REST_MS = 5000;
/** After this life a process counts as healthy, and its next death as the first. */
const HEALTHY_MS = 10_000;

interface Kept {
  process: TunnelProcess;
  startedMs: number;
  restMs: number;
  /** The process has its key and peers. */
  configured: boolean;
}

/** Gives a process its key, port and peers. False while it does not answer yet. */
const configure = async (unit: Unit): Promise<boolean> => {
  try {
    await using device = openUserspaceDevice(unit.device);
    const { device: _, privateKeyFile, listenPort, peers } = unit;
    const privateKey = readFileSync(privateKeyFile, 'utf8').trim();
    const wanted = peers.map(({ publicKey, allowedIps, endpoint, persistentKeepaliveSeconds }) => ({
      publicKey,
      allowedIps,
      ...(endpoint === undefined ? {} : { endpoint }),
      ...(persistentKeepaliveSeconds === undefined ? {} : { persistentKeepaliveSeconds }),
    }));
    const change = diffDevice(await device.get(), { privateKey, listenPort, peers: wanted });
    if (change) await device.apply(change);
    return true;
  } catch (error) {
    const { reason } = error as { reason?: string };
    if (reason === 'absent' || reason === 'unreachable') return false;
    throw error;
  }
};

export interface Keeper {
  /** Looks once: starts what is missing, ends what is not wanted, configures what has just started. */
  tend(nowMs: number): Promise<void>;
  /** Devices whose process runs. */
  running(): string[];
}

/** Supervises the processes of a folder of units. All of its state is found again by a successor. */
export const createKeeper = ({ unitsFolder, pidsFolder, program, logger }: KeeperOptions): Keeper => {
  const kept = new Map<string, Kept>();
  const resting = new Map<string, { untilMs: number; restMs: number }>();
  let told = '';

  const start = async (device: string, nowMs: number): Promise<void> => {
    const found = findProcess(pidsFolder, device);
    if (found) {
      logger.info({ device, pid: found.pid }, 'found a running process');
      kept.set(device, { process: found, startedMs: nowMs, restMs: FIRST_REST_MS, configured: true });
      return;
    }
    const rest = resting.get(device);
    if (rest && nowMs < rest.untilMs) return;
    const process = await startProcess(pidsFolder, device, program);
    logger.info({ device, pid: process.pid }, 'started');
    kept.set(device, { process, startedMs: nowMs, restMs: rest?.restMs ?? FIRST_REST_MS, configured: false });
  };

  const noteDeath = (device: string, entry: Kept, nowMs: number): void => {
    const lived = nowMs - entry.startedMs;
    const restMs = lived > HEALTHY_MS ? FIRST_REST_MS : Math.min(entry.restMs * 2, LONGEST_REST_MS);
    logger.warn({ device, livedMs: lived, restMs }, 'the process ended');
    kept.delete(device);
    resting.set(device, { untilMs: lived > HEALTHY_MS ? nowMs : nowMs + restMs, restMs });
  };

  const tendUnit = async (unit: Unit, nowMs: number): Promise<void> => {
    const entry = kept.get(unit.device);
    if (entry && !entry.process.isAlive()) noteDeath(unit.device, entry, nowMs);
    if (!kept.has(unit.device)) await start(unit.device, nowMs);
    const current = kept.get(unit.device);
    if (current && !current.configured) current.configured = await configure(unit);
  };

  return {
    async tend(nowMs) {
      const { units, refused } = readUnits(unitsFolder);
      if (refused.join() !== told) for (const reason of refused) logger.error({ reason }, 'a unit was refused');
      told = refused.join();
      for (const unit of units.values()) {
        try {
          await tendUnit(unit, nowMs);
        } catch (error) {
          logger.error({ device: unit.device, error: (error as Error).message }, 'cannot tend the unit');
        }
      }
      for (const [device, entry] of kept) {
        if (units.has(device)) continue;
        entry.process.end();
        kept.delete(device);
        logger.info({ device }, 'ended: its unit is gone');
      }
    },
    running: () => [...kept].filter(([, { process }]) => process.isAlive()).map(([device]) => device),
  };
};
