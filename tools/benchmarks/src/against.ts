import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { run } from '@unbounded/rig/command';
import { cache, checkout } from '@unbounded/rig/paths';
import { type Round, row } from './rounds.ts';

/**
 * What our network costs next to another version of it: labs of both versions are brought up in turns, and `overlay` and
 * `cni-add` measure in each. Overlay figures are ratios to the path made by hand in the same lab, so that a busy machine
 * slows both.
 */

const TURNS = Number(process.env['TURNS'] ?? 3);

interface Side {
  readonly folder: string;
  readonly cache: string;
}

const inside = ({ folder, cache }: Side, program: string, ...args: string[]): string =>
  run([join(folder, program), ...args], { env: { ...process.env, UNBOUNDED_CACHE: cache } });

/** Each row of the tables that `overlay` prints: ours by what was made by hand. */
const ratiosOf = (tables: string): Map<string, number> => {
  const found = new Map<string, number>();
  let title = '';
  for (const line of tables.split('\n')) {
    title = /^((?:Within|Between)[^:]*):/.exec(line)?.[1] ?? title;
    const [, name, ours, byHand] = line.split('|').map((cell) => cell.trim());
    const ratio = Number(ours) / Number(byHand);
    if (Number.isFinite(ratio)) found.set(`${title}: ${name}`, ratio);
  }
  if (found.size === 0) throw new Error(`overlay printed no table: ${tables}`);
  return found;
};

const measure = (side: Side): Map<string, number> => {
  inside(side, 'tools/lab', 'up');
  try {
    const figures = ratiosOf(inside(side, 'tools/bench', 'overlay'));
    const added = inside({ folder: checkout, cache: side.cache }, 'tools/bench', 'cni-add');
    for (const kind of ['median', 'tenth percentile'])
      figures.set(`CNI ADD, ${kind} (ms)`, Number(new RegExp(`${kind} ([\\d.]+)`).exec(added)?.[1]));
    return figures;
  } finally {
    inside(side, 'tools/lab', 'down');
  }
};

const main = (): void => {
  const [other] = process.argv.slice(2).map((folder) => resolve(folder));
  if (other === undefined || !existsSync(join(other, 'tools/lab')))
    throw new Error(
      `the other version's checkout is "${other ?? ''}": make one, for example git worktree add ../before COMMIT, and name its folder`,
    );
  // The other version's programs stand beside ours, and are built there when they are not.
  const sides = { ours: { folder: checkout, cache }, theirs: { folder: other, cache: `${cache}-other` } };
  const rounds = new Map<string, Round[]>();
  for (let turn = 0; turn < TURNS; turn++) {
    const figures: Partial<Record<'ours' | 'theirs', Map<string, number>>> = {};
    for (const side of turn % 2 === 0 ? (['theirs', 'ours'] as const) : (['ours', 'theirs'] as const)) {
      figures[side] = measure(sides[side]);
      console.error(`turn ${turn + 1} of ${TURNS}, ${side}: done`);
    }
    for (const [name, ours] of figures.ours!)
      rounds.set(name, [...(rounds.get(name) ?? []), { ours, theirs: figures.theirs!.get(name)! }]);
  }
  console.log(`${TURNS} turns; rows of the overlay are ratios to the path by hand.\n`);
  console.log('| | ours | other version | ratio | least - greatest |\n|---|---|---|---|---|');
  for (const [name, all] of rounds) console.log(row(name, all));
};

main();
