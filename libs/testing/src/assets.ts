import { homedir } from 'node:os';
import { join } from 'node:path';

/** Where tools/assets/build puts programs, and tests what they keep on the machine. */
export const assetsFolder = (): string => process.env['UNBOUNDED_ASSETS'] ?? join(homedir(), '.cache/unbounded');
