import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { STATS } from '@unbounded/bpf-maps';
import { nodeCommand } from '@unbounded/config/node-command';
import { beforeAll, expect, test } from 'vitest';
import type { Report } from './overlay-drops.scenario.ts';

/** A network of its own, and folders of its own over those of the machine. */
const ENTER = `set -e
for folder in /run /var/lib /etc/cni /opt/cni; do [ ! -d $folder ] || mount -t tmpfs tmpfs $folder; done
mount -t sysfs sysfs /sys; mount -t bpf bpf /sys/fs/bpf
exec "$0" "$@"`;

const REASONS = STATS.flatMap((stat) => (stat.startsWith('drop_') ? [stat.slice('drop_'.length)] : []));

let report: Report;
beforeAll(() => {
  const scenario = join(import.meta.dirname, 'overlay-drops.scenario.ts');
  const argv = ['--net', '--mount', '--propagation', 'private', 'sh', '-c', ENTER, ...nodeCommand, scenario];
  report = JSON.parse(execFileSync('unshare', argv, { encoding: 'utf8' }).trimEnd().split('\n').at(-1)!) as Report;
}, 60_000);

test('there is a packet for each reason for which the eBPF programs drop one', () => {
  expect(Object.keys(report).sort()).toEqual([...REASONS].sort());
});

test.each(REASONS)('a packet that is dropped as %s raises the agent’s metric of that reason by one', (reason) => {
  const [before, after] = report[reason]!;
  expect(after - before).toBe(1);
});
