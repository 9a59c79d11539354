import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { root } from './targets.ts';

/** Corpora in the tree: a text file for each harness, a line for each input, in hexadecimal. */

const fileOf = (name: string): string => join(root, 'tools/fuzz/corpora', `${name}.txt`);

const bytesOf = (line: string): Uint8Array => new Uint8Array(Buffer.from(line, 'hex'));

export const readCorpus = (name: string): Uint8Array[] =>
  existsSync(fileOf(name))
    ? readFileSync(fileOf(name), 'utf8')
        .split('\n')
        .filter((line) => line !== '')
        .map(bytesOf)
    : [];

export const writeCorpus = (name: string, inputs: readonly Uint8Array[]): void => {
  const lines = inputs.filter((input) => input.length > 0).map((input) => Buffer.from(input).toString('hex'));
  mkdirSync(dirname(fileOf(name)), { recursive: true });
  writeFileSync(fileOf(name), `${lines.toSorted((a, b) => a.length - b.length || (a < b ? -1 : 1)).join('\n')}\n`);
};
