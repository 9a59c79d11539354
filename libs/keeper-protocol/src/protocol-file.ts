import { readFileSync, statSync } from 'node:fs';
import { holds, replaceFile } from '@unbounded/state-files';
import { z } from 'zod';
import { describeIssues, KeeperProtocolError } from './protocol-error.ts';

export { KeeperProtocolError } from './protocol-error.ts';

/**
 * What a reader of this library knows. A file may say its `version`, and in `minReaderVersion` which version a reader must
 * know at least; both are 1 where they are absent. Version 1 is written without them: keepers that were built before this
 * library refuse a unit with a field that they do not know.
 */
export const PROTOCOL_VERSION = 1;

const versionNumber = z.int('must be an integer of at least 1').min(1, 'must be an integer of at least 1');
const versionsSchema = z.object({
  version: versionNumber.exactOptional(),
  minReaderVersion: versionNumber.exactOptional(),
});

/** Only root reads and writes these files. */
const MODE = 0o600;

type DeepReadonly<T> = T extends object ? { readonly [K in keyof T]: DeepReadonly<T[K]> } : T;

interface WriteOptions {
  /** False: whole, but not synchronized, for a process under Node's --permission, which forbids fsync. */
  readonly durable?: boolean;
}

/** One kind of file: its type, parser and writer. */
export interface ProtocolFile<T> {
  /** Fields that are not known are left out. @throws KeeperProtocolError */
  parse(text: string): T;
  /** @throws KeeperProtocolError when a reader would refuse the value */
  format(value: T): string;
  /** Of a regular file that is not too large. @throws KeeperProtocolError, or the error of the system call */
  readText(path: string): string;
  /** @throws KeeperProtocolError; or the error of the system call, with code ENOENT when there is no such file */
  read(path: string): T;
  /**
   * Replaces the file whole, unless it holds that value. @returns whether it was written
   * @throws KeeperProtocolError, or the error of the system call; the file is as it was before
   */
  write(path: string, value: T, options?: WriteOptions): boolean;
}

export interface ProtocolFileOptions<Schema extends z.ZodType> {
  /** What messages call it. */
  readonly name: string;
  readonly schema: Schema;
  readonly maxBytes: number;
  /** What to do when a reader is too old for a file. */
  readonly remedy: string;
}

export const protocolFile = <Schema extends z.ZodType>({
  name,
  schema,
  maxBytes,
  remedy,
}: ProtocolFileOptions<Schema>): ProtocolFile<DeepReadonly<z.output<Schema>>> => {
  type Value = DeepReadonly<z.output<Schema>>;
  const refuse = (why: string, cause?: unknown): never => {
    throw new KeeperProtocolError(`${name}: ${why}`, { cause });
  };
  const checkSize = (bytes: number): void => {
    if (bytes > maxBytes) refuse(`${bytes} bytes: must be at most ${maxBytes}`);
  };

  const check = <Checked extends z.ZodType>(checker: Checked, value: unknown): z.output<Checked> => {
    const checked = checker.safeParse(value);
    return checked.success ? checked.data : refuse(describeIssues(value, checked.error));
  };

  /** First, so that a reader that is too old says so, and not what else it does not understand. */
  const checkVersion = (value: unknown): void => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return;
    const { minReaderVersion = 1 } = check(versionsSchema, value);
    if (minReaderVersion > PROTOCOL_VERSION)
      refuse(`minReaderVersion ${minReaderVersion}: this reader knows versions up to ${PROTOCOL_VERSION}: ${remedy}`);
  };

  const jsonOf = (text: string): unknown => {
    try {
      return JSON.parse(text);
    } catch (error) {
      return refuse(`must be JSON: ${(error as Error).message}`, error);
    }
  };

  const parse = (text: string): Value => {
    checkSize(text.length); // of these there are no more than bytes
    const value = jsonOf(text);
    checkVersion(value);
    return check(schema, value) as Value;
  };

  const format = (value: Value): string => {
    const text = JSON.stringify(check(schema, value));
    checkSize(Buffer.byteLength(text));
    return text;
  };

  const readText = (path: string): string => {
    const stat = statSync(path);
    if (!stat.isFile()) refuse(`${path}: must be a regular file`);
    checkSize(stat.size);
    return readFileSync(path, 'utf8');
  };

  return {
    parse,
    format,
    readText,
    read: (path) => parse(readText(path)),
    write(path, value, { durable = true } = {}) {
      if (holds(path, JSON.stringify(value))) return false; // so that a pass at rest validates nothing
      const text = format(value);
      if (holds(path, text)) return false;
      replaceFile(path, text, { mode: MODE, durable });
      return true;
    },
  };
};
