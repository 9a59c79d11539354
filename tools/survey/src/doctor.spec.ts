import { spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';

/** What `tools/doctor` makes of answers of programs that this machine may not have, or that answer otherwise here. */

const doctor = join(import.meta.dirname, '../../doctor');
const REAL = ['bash', 'sh', 'env', 'dirname', 'head', 'uname'];
const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

/** Its rows of programs and the kernel by name, for a root whose PATH has these programs alone. */
const rowsWith = (programs: Readonly<Record<string, string>>): ReadonlyMap<string, string> => {
  const folder = mkdtempSync(join(tmpdir(), 'doctor-'));
  folders.push(folder);
  for (const name of REAL)
    symlinkSync(spawnSync('sh', ['-c', `command -v ${name}`], { encoding: 'utf8' }).stdout.trim(), join(folder, name));
  const all = { id: 'echo 0', unshare: 'shift\nexec "$@"', 'apt-get': '', ...programs };
  for (const [name, script] of Object.entries(all)) {
    writeFileSync(join(folder, name), `#!/bin/sh\n${script}\n`);
    chmodSync(join(folder, name), 0o755);
  }
  const { stdout } = spawnSync(doctor, { env: { PATH: folder, HOME: folder }, encoding: 'utf8' });
  return new Map(
    stdout
      .split('\nFirewalls')[0]!
      .split('\n')
      .flatMap((line) => {
        const [, name, rest] = /^ {2}(\S.*?) {2,}(\S.*)$/.exec(line) ?? [];
        return name === undefined ? [] : [[name, rest!.replaceAll(/ +/g, ' ').trim()] as const];
      }),
  );
};

/** As iproute2 is: no help for kinds that have no options of their own, whether or not the kernel has them. */
const IP = 'case "$*" in *"help wireguard"*) exit 255 ;; esac';

test('devices are those that the kernel makes, whatever ip has help for', () => {
  const rows = rowsWith({ ip: `${IP}\ncase "$*" in *"type geneve"*) exit 2 ;; *"type vrf") exit 2 ;; esac` });
  expect(rows.get('wireguard devices')).toBe('yes');
  expect(rows.get('vrf devices')).toBe('yes');
  expect(rows.get('geneve devices')).toBe('no Auto becomes VXLAN inside sites');
});

test('a program that is not there yet says nothing about the kernel', () => {
  const rows = rowsWith({ ip: IP });
  expect([rows.get('nft (shows rules)'), rows.get('conntrack (lists connections)')]).toEqual([
    'not yet tools/setup installs it',
    'not yet tools/setup lab installs it',
  ]);
  const ofKernel = [...rows].filter(([name]) => name.startsWith('nftables') || name.startsWith('connection tracking'));
  expect(ofKernel).toHaveLength(5);
  for (const [name, text] of ofKernel) expect(text, name).toMatch(/^unknown (nft|conntrack) asks the kernel/);
});

test('a kernel that refuses is named, with the option it lacks', () => {
  const rows = rowsWith({ ip: IP, nft: 'exit 1', conntrack: 'exit 1' });
  expect(rows.get('nftables')).toBe('MISSING a kernel with CONFIG_NF_TABLES');
  expect(rows.get('connection tracking, listed')).toContain('CONFIG_NF_CT_NETLINK');
});
