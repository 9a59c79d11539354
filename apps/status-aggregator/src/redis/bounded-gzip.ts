import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';

const compress = promisify(gzip);
const decompress = promisify(gunzip);

/** Fast: the same document is compressed again at the next push. */
const LEVEL = 1;

export const packJson = (value: unknown): Promise<Buffer> => compress(JSON.stringify(value), { level: LEVEL });

/** Undefined: it is no gzip, no JSON, or larger than that. A bomb is given up at the bound. */
export const unpackJson = async (packed: Buffer, mostBytes: number): Promise<unknown> => {
  try {
    return JSON.parse((await decompress(packed, { maxOutputLength: mostBytes })).toString('utf8'));
  } catch {
    return undefined;
  }
};
