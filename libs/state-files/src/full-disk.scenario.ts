/**
 * Writes on file systems that refuse, in a mount namespace of its own: a tmpfs of a few kB that is filled up, and a bind mount
 * that is read-only. Prints what was seen as JSON.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { removeFile, replaceFile, replaceFileAsync } from './index.ts';

export interface Report {
  readonly full: readonly string[];
  readonly contentWhileFull: string;
  /** After each of the two. */
  readonly namesWhileFull: readonly (readonly string[])[];
  readonly contentAfterwards: string;
  readonly readOnly: readonly string[];
}

const run = (...argv: string[]): string => execFileSync(argv[0]!, argv.slice(1), { encoding: 'utf8' });
const codeOf = async (write: () => unknown): Promise<string> => {
  try {
    await write();
    return 'written';
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? String(error);
  }
};

const folder = mkdtempSync(join(tmpdir(), 'full-disk-'));
const [disk, bind] = [join(folder, 'disk'), join(folder, 'bind')];
for (const path of [disk, bind]) mkdirSync(path);
run('mount', '-t', 'tmpfs', '-o', 'size=16k', 'tmpfs', disk);
const path = join(disk, 'state.json');
replaceFile(path, 'old', { mode: 0o600 });
const filler = join(disk, 'filler');
try {
  writeFileSync(filler, Buffer.alloc(64 << 10));
} catch {
  // as far as it goes
}
const long = 'new'.repeat(2000);
const names = (): string[] => readdirSync(disk).sort();
const full: string[] = [];
const namesWhileFull: string[][] = [];
for (const replace of [replaceFile, replaceFileAsync]) {
  full.push(await codeOf(() => replace(path, long, { mode: 0o600 })));
  namesWhileFull.push(names());
}
const contentWhileFull = readFileSync(path, 'utf8');
rmSync(filler);
replaceFile(path, long, { mode: 0o600 });
const contentAfterwards = readFileSync(path, 'utf8').slice(0, 3);
run('mount', '--bind', disk, bind);
run('mount', '-o', 'remount,bind,ro', bind);
const readOnly = [
  await codeOf(() => replaceFile(join(bind, 'state.json'), 'x', { mode: 0o600 })),
  await codeOf(() => replaceFileAsync(join(bind, 'state.json'), 'x', { mode: 0o600 })),
  await codeOf(() => removeFile(join(bind, 'state.json'))),
];
run('umount', bind);
run('umount', disk);
rmSync(folder, { recursive: true });
console.log(JSON.stringify({ full, contentWhileFull, namesWhileFull, contentAfterwards, readOnly } satisfies Report));
