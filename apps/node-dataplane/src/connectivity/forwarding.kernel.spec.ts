import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { agentCommand } from '@unbounded/config/node-command';
import { expect, test } from 'vitest';
import type { Report } from './forwarding.scenario.ts';

/** A network of its own, and folders of its own over those of the machine. */
const ENTER = `set -e
for folder in /run /var/lib /etc/cni /opt/cni; do [ ! -d $folder ] || mount -t tmpfs tmpfs $folder; done
mount -t sysfs sysfs /sys; mount -t bpf bpf /sys/fs/bpf
exec "$0" "$@"`;

test('a route and a next-hop group that are taken away show as wanted and not present, until they are repaired', () => {
  const scenario = join(import.meta.dirname, 'forwarding.scenario.ts');
  const unshare = ['--net', '--mount', '--propagation', 'private', 'sh', '-c', ENTER, ...agentCommand, scenario];
  const printed = execFileSync('unshare', unshare, { encoding: 'utf8' });
  const report = JSON.parse(printed.trimEnd().split('\n').at(-1)!) as Report;
  expect(report.tables).toEqual(expect.arrayContaining(['nexthop groups', 'routes 252']));
  expect([report.before, report.after]).toEqual([[], []]);
  expect(report.routeTaken).toEqual([
    expect.stringMatching(/^routes 252 100\.66\.0\.0\/16 Missing: \[\[\{"group":.*\],null\]$/),
  ]);
  expect(report.groupTaken).toContainEqual(expect.stringMatching(/^nexthop groups .* Missing: \[\[.*\],null\]$/));
});
