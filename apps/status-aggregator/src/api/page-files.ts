import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { extname, join, relative, sep } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';

const compress = promisify(gzip);

/** A file of the page, as it is sent. */
export interface PageFile {
  readonly type: string;
  readonly plain: Buffer;
  /** Only where it is smaller. */
  readonly gzipped: Buffer | undefined;
  readonly etag: string;
  /** Its name has a hash of what it holds: it is the same for ever. */
  readonly isImmutable: boolean;
}

/** Others are not served: source maps, for instance. */
const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.woff2': 'font/woff2',
};

/** As Vite names assets: `assets/index-BbHyHMnR.js`. */
const HASHED = /^\/assets\/.+-[\w-]{8}\.\w+$/;

const fileAt = async (file: string, path: string): Promise<PageFile> => {
  const plain = await readFile(file);
  const gzipped = await compress(plain, { level: 9 });
  return {
    type: TYPES[extname(file)]!,
    plain,
    gzipped: gzipped.length < plain.length ? gzipped : undefined,
    // Weak (RFC 9110 8.8.1): compressed and plain answers share it.
    etag: `W/"${createHash('sha256').update(plain).digest('base64url').slice(0, 22)}"`,
    isImmutable: HASHED.test(path),
  };
};

const namesIn = async (folder: string): Promise<string[]> => {
  try {
    const entries = await readdir(folder, { recursive: true, withFileTypes: true });
    return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
};

/**
 * Files of a folder by the path of their URL, read once: a request is looked up here and never in the file system.
 * Empty: there is no such folder.
 */
export const readPageFiles = async (folder: string): Promise<ReadonlyMap<string, PageFile>> => {
  const names = (await namesIn(folder)).filter((name) => Object.hasOwn(TYPES, extname(name)));
  const paths = names.map((name) => [`/${relative(folder, name).split(sep).join('/')}`, name] as const);
  return new Map(await Promise.all(paths.map(async ([path, name]) => [path, await fileAt(name, path)] as const)));
};
