import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { nodeCommand } from '@unbounded/config/node-command';
import { checkout } from '@unbounded/rig/paths';

/**
 * A pod's device in a tailnet, next to upstream's own tailscaled as a sidecar; and 30 devices on one node. See ../README.md. What runs
 * does so in namespaces of its own, processes too: whatever becomes of the benchmark, the kernel takes all of it away.
 */

const PROGRAMS = ['probe', 'tailnet-device', 'tailnet-control', 'tailscaled'];
const NAMESPACES = ['--net', '--mount', '--propagation', 'private', '--pid', '--fork', '--kill-child', '--mount-proc'];
/** Nothing is written to the machine's folders for state. The shell stays: a first process ignores what would end others. */
const ENTER = `for folder in /run /var/lib; do mount -t tmpfs tmpfs $folder; done
mkdir -p /run/netns; mount -t sysfs sysfs /sys
"$0" "$@"; exit $?`;
const RESOLVER = '/etc/resolv.conf';

execFileSync(join(checkout, 'tools/assets/build'), PROGRAMS, { stdio: 'inherit' });
execFileSync(join(checkout, 'tools/build'), ['node-keeper'], { stdio: 'inherit' });
const before = readFileSync(RESOLVER, 'utf8');
const program = [...nodeCommand, join(import.meta.dirname, 'tailnet-run.ts'), ...process.argv.slice(2)];
const argv = ['--pdeathsig', 'KILL', 'unshare', ...NAMESPACES, 'sh', '-c', ENTER, ...program];
const { status } = spawnSync('setpriv', argv, { stdio: 'inherit' });
if (readFileSync(RESOLVER, 'utf8') !== before) throw new Error(`${RESOLVER} is another than before`);
process.exitCode = status ?? 1;
