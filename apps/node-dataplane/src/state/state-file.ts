import { existsSync, readFileSync } from 'node:fs';
import { removeFile, replaceFile } from '@unbounded/state-files';
import { createStateFaults, type StateFaults } from './state-faults.ts';

/**
 * A JSON value in a file, written whole (and durably, if nothing else is said) or not at all. Nothing here throws: a file that cannot be read, or holds
 * something else, counts as absent; one that cannot be written is reported by its StateFaults and written later.
 */
export interface StateFile<T> {
  read(): T | undefined;
  /** Writes only a value that differs from what the file holds. */
  write(value: T): void;
  remove(): void;
}

const MODE = 0o600;

const unusable = (): Error => new Error('it holds no such value: cut short, or written by another program');

/**
 * @param faults not given: failures are nobody's concern (tests, uninstall)
 * @param durable false: of use in this boot only, so that a write waits for no disk
 */
export const stateFile = <T>(
  path: string,
  isValid: (value: unknown) => value is T,
  faults: StateFaults = createStateFaults(),
  { durable = true }: { readonly durable?: boolean } = {},
): StateFile<T> => {
  let written: string | undefined;
  const parse = (text: string): T => {
    const value: unknown = JSON.parse(text);
    if (!isValid(value)) throw unusable();
    return value;
  };
  return {
    read() {
      if (!existsSync(path)) return undefined;
      try {
        const text = readFileSync(path, 'utf8');
        const value = parse(text);
        written = text;
        return value;
      } catch (error) {
        faults.unreadable(path, error as Error);
        return undefined;
      }
    },
    write(value) {
      const text = JSON.stringify(value);
      if (text === written && existsSync(path)) return faults.settle(path);
      faults.attempt(path, () => {
        replaceFile(path, text, { mode: MODE, durable });
        written = text;
      });
    },
    remove() {
      written = undefined;
      faults.attempt(path, () => removeFile(path));
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
