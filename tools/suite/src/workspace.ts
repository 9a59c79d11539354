import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ProjectGraph } from './affected.ts';
import { NX, root } from './run-layer.ts';

/** What Nx and git know of the tree. */

const linesOf = (args: readonly string[]): string[] =>
  execFileSync('git', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
    .split('\n')
    .filter(Boolean);

const isCommit = (name: string): boolean => {
  try {
    return linesOf(['rev-parse', '--verify', '--quiet', `${name}^{commit}`]).length === 1;
  } catch {
    return false;
  }
};

/** Where our change began: the last commit that the remote has, too; without a remote the last commit. */
const defaultBase = (): string =>
  isCommit('origin/HEAD') ? linesOf(['merge-base', 'origin/HEAD', 'HEAD'])[0]! : 'HEAD';

/** Files that differ from a commit, committed or not, those that git does not know yet included. @throws Error that names the commit */
export const changedSince = (base = defaultBase()): string[] => {
  if (!isCommit(base)) throw new Error(`affected BASE: "${base}" is not a commit of this repository`);
  return [
    ...linesOf(['diff', '--name-only', '--no-renames', base]),
    ...linesOf(['ls-files', '--others', '--exclude-standard']),
  ];
};

export const projectGraph = (): ProjectGraph => {
  const folder = mkdtempSync(join(tmpdir(), 'unbounded-graph-'));
  try {
    const file = join(folder, 'graph.json');
    const [program, ...args] = [...NX, 'graph', `--file=${file}`];
    execFileSync(program, args, { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] });
    return (JSON.parse(readFileSync(file, 'utf8')) as { graph: ProjectGraph }).graph;
  } finally {
    rmSync(folder, { recursive: true });
  }
};
