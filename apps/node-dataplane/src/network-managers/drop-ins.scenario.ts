/** A host whose /etc is read-only, in a mount namespace of its own (drop-ins.kernel.spec.ts); prints what was seen as JSON. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ensureDropIns, removeDropIns } from './drop-ins.ts';

export interface Report {
  /** Where nothing of ours is there yet. */
  readonly refused: readonly string[];
  /** Where our files are there from before. */
  readonly satisfied: readonly string[];
  readonly removal: string | undefined;
  readonly kept: boolean;
}

const run = (...argv: string[]): string => execFileSync(argv[0]!, argv.slice(1), { encoding: 'utf8' });
const top = mkdtempSync(join(tmpdir(), 'read-only-'));
const etc = join(top, 'etc');
mkdirSync(etc);
run('mount', '-t', 'tmpfs', 'tmpfs', etc);
for (const home of ['systemd', 'NetworkManager']) mkdirSync(join(etc, home));
const problems = (): string[] => ensureDropIns(etc).problems.map(({ message }) => message);

run('mount', '-o', 'remount,ro', etc);
const refused = problems();
run('mount', '-o', 'remount,rw', etc);
problems();
run('mount', '-o', 'remount,ro', etc);
const satisfied = problems();
let removal: string | undefined;
try {
  removeDropIns(etc, () => undefined);
} catch (error) {
  removal = (error as Error).message;
}
const kept = readFileSync(join(etc, 'systemd/networkd.conf.d/90-unbounded.conf'), 'utf8') !== '';
run('umount', etc);
rmSync(top, { recursive: true });
process.stdout.write(`${JSON.stringify({ refused, satisfied, removal, kept } satisfies Report)}\n`);
