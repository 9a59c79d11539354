import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';

/**
 * The tree of an earlier commit, taken from the repository's own history and built by its own tools, and its image under a version
 * of its own: what an upgrade begins with.
 */

const checkout = resolve(import.meta.dirname, '../../..');
const cache = process.env['UNBOUNDED_CACHE'] ?? join(homedir(), '.cache/unbounded');
const assets = process.env['UNBOUNDED_ASSETS'] ?? cache;

export interface FormerTree {
  readonly commit: string;
  /** Tag of its image. */
  readonly version: string;
  readonly chartFolder: string;
  readonly imageFile: string;
}

interface Lock {
  readonly packages: Readonly<Record<string, { readonly version?: string; readonly link?: boolean }>>;
}

const lockOf = (folder: string): Lock => JSON.parse(readFileSync(join(folder, 'package-lock.json'), 'utf8')) as Lock;

/** What npm installs for a tree besides the tree's own packages. */
const installed = (folder: string): string =>
  Object.entries(lockOf(folder).packages)
    .filter(([path, { link }]) => path.includes('node_modules/') && !link)
    .map(([path, { version }]) => `${path} ${version}`)
    .sort()
    .join('\n');

const workspaces = (folder: string): string[] =>
  ['apps', 'libs', 'tools'].flatMap((group) =>
    readdirSync(join(folder, group))
      .map((name) => join(group, name))
      .filter((path) => existsSync(join(folder, path, 'package.json'))),
  );

const nameOf = (folder: string): string =>
  (JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { name: string }).name;

/** The installed packages are the checkout's where they are the same; else the tree's own tools/setup installs them. */
const linkPackages = (folder: string): void => {
  if (installed(folder) !== installed(checkout)) return;
  const [from, to] = [join(checkout, 'node_modules'), join(folder, 'node_modules')];
  mkdirSync(join(to, '@unbounded'), { recursive: true });
  for (const name of readdirSync(from).filter((entry) => entry !== '@unbounded' && !entry.startsWith('.v')))
    symlinkSync(join(from, name), join(to, name));
  for (const path of workspaces(folder)) {
    const own = join(folder, 'node_modules', nameOf(join(folder, path)));
    symlinkSync(relative(dirname(own), join(folder, path)), own);
    const nested = join(checkout, path, 'node_modules');
    if (existsSync(nested)) symlinkSync(nested, join(folder, path, 'node_modules'));
  }
};

/** @throws Error that says how to get the commit */
const resolveCommit = (commit: string): string => {
  try {
    const argv = ['rev-parse', '--verify', '--quiet', `${commit}^{commit}`];
    return execFileSync('git', argv, { cwd: checkout, encoding: 'utf8', stdio: 'pipe' }).trim();
  } catch {
    throw new Error(
      `commit ${commit}, from which to upgrade, is not in the history of ${checkout}: git fetch --unshallow gets all of it, git fetch origin ${commit} that one; UNBOUNDED_UPGRADE_FROM names another`,
    );
  }
};

const unpack = (commit: string, version: string, folder: string): void => {
  const part = `${folder}.part`;
  rmSync(part, { recursive: true, force: true });
  mkdirSync(part, { recursive: true });
  const tar = execFileSync('git', ['archive', commit], { cwd: checkout, maxBuffer: 1 << 30 });
  execFileSync('tar', ['-x', '-C', part], { input: tar });
  const file = join(part, 'package.json');
  writeFileSync(file, JSON.stringify({ ...(JSON.parse(readFileSync(file, 'utf8')) as object), version }, undefined, 2));
  renameSync(part, folder);
  linkPackages(folder);
};

/** Unpacks and builds it in the cache, once. @throws Error when the commit is not there, or does not build */
export const formerTree = (given: string): FormerTree => {
  const commit = resolveCommit(given);
  const version = `0.0.0-${commit.slice(0, 12)}`;
  const folder = join(cache, 'former', commit.slice(0, 12));
  if (!existsSync(folder)) unpack(commit, version, folder);
  const printed = execFileSync(join(folder, 'tools/image'), {
    cwd: folder,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, UNBOUNDED_CACHE: join(folder, '.cache'), UNBOUNDED_ASSETS: assets },
  });
  const imageFile = printed.trim().split('\n').at(-1)!;
  return { commit, version, chartFolder: join(folder, 'deploy/chart'), imageFile };
};
