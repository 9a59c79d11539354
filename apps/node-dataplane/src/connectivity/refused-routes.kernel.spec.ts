import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { agentCommand } from '@unbounded/config/node-command';
import { expect, test } from 'vitest';
import type { Report } from './refused-routes.scenario.ts';

/** A network of its own, and folders of its own over those of the machine. */
const ENTER = `set -e
for folder in /run /var/lib /etc/cni /opt/cni; do [ ! -d $folder ] || mount -t tmpfs tmpfs $folder; done
mount -t sysfs sysfs /sys; mount -t bpf bpf /sys/fs/bpf
exec "$0" "$@"`;

test.each(['ebpf', 'netlink'])(
  'an address to which the kernel takes no plain route, and a tunnel whose port is taken, stop nothing but what leads by them (%s)',
  (kind) => {
    const scenario = join(import.meta.dirname, 'refused-routes.scenario.ts');
    const unshare = ['--net', '--mount', '--propagation', 'private', 'sh', '-c', ENTER, ...agentCommand, scenario];
    const printed = execFileSync('unshare', [...unshare, 'auto', kind], { encoding: 'utf8' });
    const report = JSON.parse(printed.trimEnd().split('\n').at(-1)!) as Report;
    const seen = {
      reasons: ['PeerRouteFailed'],
      isContained: true,
      isStaleGone: true,
      hasRule: kind === 'netlink',
      hasGoodRoute: true,
    };
    const tunnel = { ...seen, reasons: ['DeviceFailed'] };
    expect(report).toEqual({ '10.1.0.255': seen, '10.77.0.9': seen, tunnel });
  },
);
