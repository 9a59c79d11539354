import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { PeerSpec } from '@unbounded/wireguard';

/**
 * What the agent asks of node-keeper: a file for each user-space WireGuard interface (see apps/node-keeper/README.md).
 * It holds all that the keeper needs to bring a died process back as it was, endpoints included, without the agent.
 */
export interface KeeperUnit {
  readonly device: string;
  /** File with the private key; the key itself stands in no unit. */
  readonly privateKeyFile: string;
  readonly listenPort: number;
  readonly peers: readonly PeerSpec[];
}

const fileOf = (folder: string, device: string): string => join(folder, `${device}.json`);

/** Writes the unit if it is not like that already. Returns whether it was written. */
export const writeUnit = (folder: string, unit: KeeperUnit): boolean => {
  const file = fileOf(folder, unit.device);
  const text = JSON.stringify(unit);
  if (existsSync(file) && readFileSync(file, 'utf8') === text) return false;
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  writeFileSync(`${file}.new`, text, { mode: 0o600 });
  renameSync(`${file}.new`, file);
  return true;
};

export const removeUnit = (folder: string, device: string): void => rmSync(fileOf(folder, device), { force: true });

/** Devices for which there is a unit. */
export const unitDevices = (folder: string): string[] =>
  existsSync(folder)
    ? readdirSync(folder)
        .filter((name) => name.endsWith('.json'))
        .map((name) => name.slice(0, -'.json'.length))
    : [];
