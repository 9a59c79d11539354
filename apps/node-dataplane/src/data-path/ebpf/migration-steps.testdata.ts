import fs, { realpathSync } from 'node:fs';
import { createRequire, syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { isMainThread } from 'node:worker_threads';

/**
 * Loaded before the agent (`--import`): counts the steps by which it changes pins, maps and programs, and kills the process before
 * the one that CRASH_BEFORE names, as a power cut would.
 */

/** Modules are known by where links lead to. */
const ADDON = realpathSync(join(import.meta.dirname, '../../../../../libs/libbpf-ts/native/build/libbpf.node'));
const CHANGES = ['loadObject', 'pinHandle', 'mapUpdate', 'mapDelete', 'updateLink', 'attachTcx', 'attachClsact'];
const crashBefore = Number(process.env['CRASH_BEFORE'] ?? Number.NaN);
let steps = 0;

/** How many steps there were so far. */
export const stepsTaken = (): number => steps;

type Act = (...args: unknown[]) => unknown;
const counted =
  (name: string, act: Act): Act =>
  (...args) => {
    if (steps++ === crashBefore) {
      console.error(`killed before step ${crashBefore}: ${name} ${args.find((arg) => typeof arg === 'string') ?? ''}`);
      process.kill(process.pid, 'SIGKILL');
    }
    return act(...args);
  };

if (isMainThread) {
  const require = createRequire(import.meta.url);
  const addon = require(ADDON) as Record<string, Act>;
  require.cache[ADDON]!.exports = {
    ...addon,
    ...Object.fromEntries(CHANGES.map((name) => [name, counted(name, addon[name]!)])),
  };
  const files = fs as unknown as Record<string, Act>;
  for (const name of ['mkdirSync', 'rmSync']) {
    const act = files[name]!;
    const step = counted(name, act);
    files[name] = (...args) => (String(args[0]).startsWith('/sys/fs/bpf/') ? step(...args) : act(...args));
  }
  syncBuiltinESMExports();
}
