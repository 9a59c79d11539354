import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';

/** What the agent asks for, one file an interface. The agent is trusted no further than this schema. */

const key = z.string().regex(/^[A-Za-z0-9+/]{43}=$/, 'must be a WireGuard key in base64');
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
}

/** Reads every unit of the folder; a bad file is told and the others count. */
export const readUnits = (folder: string): Units => {
  const units = new Map<string, Unit>();
  const refused: string[] = [];
  for (const name of existsSync(folder) ? readdirSync(folder).filter((file) => file.endsWith('.json')) : []) {
    try {
      const text = readFileSync(join(folder, name), 'utf8');
      if (text.length > LARGEST_FILE) throw new Error(`${text.length} bytes are more than ${LARGEST_FILE}`);
      const unit = unitSchema.parse(JSON.parse(text));
      if (`${unit.device}.json` !== name)
        throw new Error(`it is for ${unit.device}: the file must be named ${unit.device}.json`);
      units.set(unit.device, unit);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') continue; // taken away while we looked
      refused.push(`${name}: ${error instanceof z.ZodError ? z.prettifyError(error) : (error as Error).message}`);
    }
  }
  return { units, refused };
};
