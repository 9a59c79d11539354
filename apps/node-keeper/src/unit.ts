import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isKey } from '@unbounded/wireguard';
import { z } from 'zod';

/** What the agent asks for, one file an interface. The agent is trusted no further than this schema. */

const key = z.string().refine(isKey, 'must be a WireGuard key in base64');
const peer = z.strictObject({
  publicKey: key,
  endpoint: z.string().max(64).optional(),
  allowedIps: z.array(z.string().max(49)).max(65_536),
  persistentKeepaliveSeconds: z.int().min(0).max(65_535).optional(),
});
const unitSchema = z.strictObject({
  device: z.string().regex(/^wg[0-9]{1,5}$/, 'must be wg<port>'),
  privateKeyFile: z.string().regex(/^\/etc\/wireguard\/[\w.-]+$/, 'must be a file in /etc/wireguard'),
  listenPort: z.int().min(1).max(65_535),
  peers: z.array(peer).max(10_000),
});
export type Unit = z.infer<typeof unitSchema>;

const LARGEST_FILE = 16 << 20;

export interface Units {
  readonly units: ReadonlyMap<string, Unit>;
  /** Files that hold no unit, with the reason. */
  readonly refused: readonly string[];
  /** Devices whose units are there and cannot be used now: what runs for them goes on. */
  readonly unclear: ReadonlySet<string>;
  /** false: the folder could not be read, so nothing is known of the units that are not in `units`. */
  readonly isComplete: boolean;
}

const reasonOf = (error: unknown): string =>
  error instanceof z.ZodError ? z.prettifyError(error) : (error as Error).message;

/** @throws Error when it is no unit, or another device's */
const readUnit = (folder: string, name: string): Unit => {
  const text = readFileSync(join(folder, name), 'utf8');
  if (text.length > LARGEST_FILE) throw new Error(`${text.length} bytes are more than ${LARGEST_FILE}`);
  const unit = unitSchema.parse(JSON.parse(text));
  if (`${unit.device}.json` !== name)
    throw new Error(`it is for ${unit.device}: the file must be named ${unit.device}.json`);
  return unit;
};

/** Names of the unit files; undefined with the reason when the folder cannot be read. A missing folder holds none. */
const namesIn = (folder: string): string[] | Error => {
  try {
    return readdirSync(folder).filter((file) => file.endsWith('.json'));
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT' ? [] : (error as Error);
  }
};

/** Reads every unit of the folder; what is wrong with one stands in `refused`, and the others count. Never throws. */
export const readUnits = (folder: string): Units => {
  const units = new Map<string, Unit>();
  const unclear = new Set<string>();
  const names = namesIn(folder);
  if (names instanceof Error) return { units, unclear, refused: [`${folder}: ${names.message}`], isComplete: false };
  const refused: string[] = [];
  for (const name of names) {
    try {
      const unit = readUnit(folder, name);
      units.set(unit.device, unit);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') continue; // taken away while we looked
      refused.push(`${name}: ${reasonOf(error)}`);
      unclear.add(name.slice(0, -'.json'.length));
    }
  }
  return { units, unclear, refused, isComplete: true };
};
