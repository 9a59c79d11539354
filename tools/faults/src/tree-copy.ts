import { execFileSync } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

/**
 * A copy of the checkout in which code can be changed and run. Installed packages and what was built are shared with the
 * checkout by symbolic links; our own packages are found in the copy, and eBPF programs are built there.
 */
export interface TreeCopy extends Disposable {
  readonly folder: string;
  /** @throws Error with git's words when the patch does not apply (any more); nothing is changed then */
  apply(patch: string): void;
  /** Takes an applied patch out again. */
  revert(patch: string): void;
  /** Builds the eBPF programs of the copy. @throws Error with the compiler's words */
  buildPrograms(): void;
}

/** Made in the copy, or of no use there. */
const OWN = new Set(['node_modules/', 'bpf/build/', '.nx/', 'build/']);

const list = (root: string, ...options: string[]): string[] =>
  execFileSync('git', ['ls-files', '-z', ...options, '--exclude-standard'], { cwd: root, encoding: 'utf8' })
    .split('\0')
    .filter((path) => path !== '');

const place = (path: string): string => {
  mkdirSync(dirname(path), { recursive: true });
  return path;
};

const copyFiles = (root: string, folder: string): void => {
  for (const path of list(root, '--cached', '--others')) {
    const source = join(root, path);
    if (!existsSync(source)) continue; // deleted and not yet committed
    if (lstatSync(source).isSymbolicLink()) symlinkSync(readlinkSync(source), place(join(folder, path)));
    else copyFileSync(source, place(join(folder, path)));
  }
};

const shareBuilt = (root: string, folder: string): void => {
  for (const path of list(root, '--others', '--ignored', '--directory').filter((ignored) => !OWN.has(ignored)))
    symlinkSync(join(root, path), place(join(folder, path.replace(/\/$/, ''))));
};

/** Links to installed packages; those to our own are relative and so lead to the copy. */
const linkPackages = (root: string, folder: string): void => {
  const [from, to] = [join(root, 'node_modules'), join(folder, 'node_modules')];
  mkdirSync(join(to, '@unbounded'), { recursive: true });
  for (const name of readdirSync(from).filter((entry) => entry !== '@unbounded' && !entry.startsWith('.v')))
    symlinkSync(join(from, name), join(to, name));
  for (const name of readdirSync(join(from, '@unbounded'))) {
    const link = join(to, '@unbounded', name);
    symlinkSync(readlinkSync(join(from, '@unbounded', name)), link);
    const leadsTo = existsSync(link) ? realpathSync(link) : 'nowhere';
    if (!leadsTo.startsWith(`${folder}/`))
      throw new Error(`@unbounded/${name} leads to ${leadsTo} and not into the copy ${folder}: run npm install`);
  }
};

const said = (error: unknown): string => (error as { stderr?: string }).stderr?.trim() ?? String(error);

/** @param root the checkout, with its uncommitted changes */
export const copyTree = (root: string): TreeCopy => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'faults-')));
  const run = (file: string, ...argv: string[]): void => {
    // The copy is no repository: git must not take one above it for its own.
    const env = { ...process.env, GIT_CEILING_DIRECTORIES: dirname(folder) };
    try {
      execFileSync(file, argv, { cwd: folder, env, encoding: 'utf8', stdio: ['ignore', 'ignore', 'pipe'] });
    } catch (error) {
      throw new Error(said(error), { cause: error });
    }
  };
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  try {
    copyFiles(root, folder);
    shareBuilt(root, folder);
    linkPackages(root, folder);
  } catch (error) {
    remove();
    throw error;
  }
  return {
    folder,
    apply: (patch) => run('git', 'apply', patch),
    revert: (patch) => run('git', 'apply', '--reverse', patch),
    buildPrograms: () => run(join(folder, 'bpf/build.sh')),
    [Symbol.dispose]: remove,
  };
};
