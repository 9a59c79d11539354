import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

/** A JSON value in a file, written whole or not at all; a file that cannot be read counts as absent. */
export interface StateFile<T> {
  read(): T | undefined;
  /** Writes only a value that differs from what the file holds. */
  write(value: T): void;
  remove(): void;
}

export const stateFile = <T>(path: string, isValid: (value: unknown) => value is T): StateFile<T> => {
  let written: string | undefined;
  return {
    read() {
      if (!existsSync(path)) return undefined;
      try {
        const text = readFileSync(path, 'utf8');
        const value: unknown = JSON.parse(text);
        if (!isValid(value)) return undefined;
        written = text;
        return value;
      } catch {
        return undefined;
      }
    },
    write(value) {
      const text = JSON.stringify(value);
      if (text === written && existsSync(path)) return;
      mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
      writeFileSync(`${path}.new`, text, { mode: 0o600 });
      renameSync(`${path}.new`, path);
      written = text;
    },
    remove() {
      rmSync(path, { force: true });
      written = undefined;
    },
  };
};

/** Whether a value is an object whose fields all pass. */
export const isRecordOf =
  <T>(isField: (value: unknown) => value is T) =>
  (value: unknown): value is Record<string, T> =>
    typeof value === 'object' && value !== null && !Array.isArray(value) && Object.values(value).every(isField);

export const isNumber = (value: unknown): value is number => typeof value === 'number';
export const isString = (value: unknown): value is string => typeof value === 'string';
