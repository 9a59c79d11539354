/** Devices that take router advertisements come after IPv6 forwarding is on. Runs in a network namespace of its own; prints accept_ra as JSON. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createSysctls } from '../../kernel/sysctls.ts';

export interface Report {
  /** A device that came later; one that somebody set back; one where somebody else had turned forwarding on. */
  readonly late: string;
  readonly setBack: string;
  readonly ofOthers: string;
  /** After uninstall. */
  readonly restored: readonly string[];
}

const conf = (device: string, key: string): string => `/proc/sys/net/ipv6/conf/${device}/${key}`;
const read = (device: string): string => readFileSync(conf(device, 'accept_ra'), 'utf8').trim();
const add = (device: string): void => {
  execFileSync('ip', ['link', 'add', device, 'type', 'veth', 'peer', 'name', `${device}p`]);
  writeFileSync(conf(device, 'accept_ra'), '1');
};
const open = (name: string) => createSysctls(join(mkdtempSync(join(tmpdir(), 'ra-')), name));
const families = { v4: false, v6: true };

writeFileSync(conf('all', 'forwarding'), '1');
add('eth9');
await open('others.json').ensure(families, async () => ['eth9']);
const ofOthers = read('eth9');
writeFileSync(conf('all', 'forwarding'), '0');
const sysctls = open('ours.json');
add('eth0');
await sysctls.ensure(families, async () => ['eth0']);
add('eth1');
writeFileSync(conf('eth0', 'accept_ra'), '1');
await sysctls.ensure(families, async () => ['eth1']);
const [late, setBack] = [read('eth1'), read('eth0')];
sysctls.restore();
const restored = [read('eth0'), read('eth1'), readFileSync(conf('all', 'forwarding'), 'utf8').trim()];
process.stdout.write(JSON.stringify({ late, setBack, ofOthers, restored } satisfies Report));
