import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { readCorpus, writeCorpus } from './corpus.ts';
import { runNative } from './run-native.ts';
import { type Outcome, runTypeScript } from './run-typescript.ts';
import { type Harness, root } from './targets.ts';

export interface FuzzOptions {
  readonly seconds: number;
  readonly seed: number;
  /** Whether what was learned goes into the tree. */
  readonly write: boolean;
}

const longest = 1 << 20;

/** Runs one harness. A finding is written to build/fuzz, and `reproduce` is the command that runs it again. */
export const fuzz = async (
  harness: Harness,
  { seconds, seed, write }: FuzzOptions,
): Promise<Outcome & { readonly reproduce?: string }> => {
  const { name, file, language } = harness;
  const request = { file, seed, seconds, corpus: readCorpus(name) };
  const outcome = language === 'c' ? runNative(request) : await runTypeScript(request);
  if (!outcome.finding) {
    if (write) writeCorpus(name, outcome.corpus);
    return outcome;
  }
  const { input } = outcome.finding;
  const found = join(root, 'build/fuzz', `${name}-${createHash('sha1').update(input).digest('hex').slice(0, 12)}`);
  mkdirSync(join(root, 'build/fuzz'), { recursive: true });
  writeFileSync(found, input.subarray(0, longest));
  return { ...outcome, reproduce: `tools/node tools/fuzz/src/main.ts ${name} ${relative(root, found)}` };
};
