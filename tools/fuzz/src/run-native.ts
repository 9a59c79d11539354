import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Outcome } from './run-typescript.ts';
import { root } from './targets.ts';

/** C harnesses: clang's libFuzzer, with AddressSanitizer and UndefinedBehaviorSanitizer. */

const FLAGS = [
  '-std=gnu11',
  '-g',
  '-O1',
  '-Wall',
  '-Wextra',
  '-Werror',
  '-fsanitize=fuzzer,address,undefined',
  '-fno-sanitize-recover=all',
];
/** eBPF programs include libbpf's helpers; here they get those that stand in for them. */
const BPF_FLAGS = ['-Wno-sign-compare', '-Wno-missing-field-initializers', `-I${join(root, 'bpf/userspace')}`];
const LONGEST_INPUT = 4096;

/** Compiles `X.fuzz.c`, with `X.c` where there is one. */
const buildNative = (file: string, folder: string): string => {
  const program = join(folder, 'fuzzer');
  const source = file.replace(/\.fuzz\.c$/, '.c');
  const flags = file.startsWith(join(root, 'bpf/')) ? [...FLAGS, ...BPF_FLAGS] : FLAGS;
  execFileSync('clang', [...flags, file, ...(existsSync(source) ? [source] : []), '-o', program], {
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  return program;
};

const writeInputs = (folder: string, inputs: readonly Uint8Array[]): string => {
  mkdirSync(folder);
  for (const [index, input] of inputs.entries()) writeFileSync(join(folder, String(index)), input);
  return folder;
};
const readInputs = (folder: string): Uint8Array[] =>
  readdirSync(folder).map((name) => new Uint8Array(readFileSync(join(folder, name))));

export interface NativeRequest {
  readonly file: string;
  readonly seed: number;
  readonly corpus: readonly Uint8Array[];
  readonly seconds: number;
}

const runFuzzer = (program: string, ...args: string[]): { readonly status: number | null; readonly output: string } => {
  const { status, stderr } = spawnSync(program, args, { encoding: 'utf8', cwd: dirname(program), maxBuffer: 64 << 20 });
  return { status, output: stderr };
};

export const runNative = ({ file, seed, corpus, seconds }: NativeRequest): Outcome => {
  const folder = mkdtempSync(join(tmpdir(), 'fuzz-'));
  try {
    const program = buildNative(file, folder);
    const inputs = writeInputs(join(folder, 'corpus'), corpus);
    const limits = [`-max_len=${LONGEST_INPUT}`, '-timeout=20', '-rss_limit_mb=1024'];
    const { status, output } = runFuzzer(
      program,
      `-seed=${seed}`,
      `-max_total_time=${Math.ceil(seconds)}`,
      '-artifact_prefix=found-',
      ...limits,
      inputs,
    );
    const found = readdirSync(folder).find((name) => name.startsWith('found-'));
    const runs = Number(/Done (\d+) runs/.exec(output)?.[1] ?? 0);
    const features = Number([...output.matchAll(/ ft: (\d+)/g)].at(-1)?.[1] ?? 0);
    if (status !== 0)
      return {
        runs,
        features,
        corpus: [],
        finding: {
          input: found === undefined ? new Uint8Array(0) : new Uint8Array(readFileSync(join(folder, found))),
          error: output.slice(-6000),
        },
      };
    const merged = writeInputs(join(folder, 'merged'), []);
    runFuzzer(program, '-merge=1', ...limits, merged, inputs);
    return { runs, features, corpus: readInputs(merged) };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};

/** Runs one input; what the harness prints goes to standard error. */
export const reproduceNative = (file: string, inputFile: string): number => {
  const folder = mkdtempSync(join(tmpdir(), 'fuzz-'));
  try {
    return spawnSync(buildNative(file, folder), [inputFile], { stdio: 'inherit' }).status ?? 1;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};
