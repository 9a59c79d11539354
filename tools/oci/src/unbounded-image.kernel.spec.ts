import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { APPS, makeUnboundedImage, VERSION } from './unbounded-image.ts';
import { unpackImage, unpackLayers } from './unpacked-image.testdata.ts';

/** What is in the image runs there: its layers are unpacked and entered, in namespaces of their own. */

const work = mkdtempSync(join(tmpdir(), 'unbounded-image-'));
const root = join(work, 'root');
const bash = (script: string): string => execFileSync('bash', ['-ec', script], { encoding: 'utf8', stdio: 'pipe' });

beforeAll(async () => {
  await makeUnboundedImage();
  const image = join(work, 'now');
  unpackLayers(image, unpackImage(VERSION, image), root);
});
afterAll(() => rmSync(work, { recursive: true, force: true }));

describe('the image', () => {
  test.each(APPS)('holds all that %s needs to start', (app) => {
    expect(bash(`chroot ${root} /usr/bin/node /unbounded/apps/${app}/dist/main.mjs --help`)).toContain('Usage:');
  });

  test('explains what becomes of the packets of a pod, for kubectl exec', () => {
    const explain = `chroot ${root} /usr/bin/node /unbounded/apps/static-egress/dist/main.mjs explain --help`;
    expect(bash(explain)).toContain('Usage: static-egress explain NAMESPACE/POD DESTINATION');
  });

  test('holds the libraries of the addons', () => {
    const script =
      'for (const f of ["libbpf", "netlink"]) process.dlopen({ exports: {} }, `/unbounded/apps/node-dataplane/dist/${f}.node`); console.log("loaded")';
    expect(bash(`chroot ${root} /usr/bin/node -e '${script}'`)).toBe('loaded\n');
  });

  test.each(['nft', 'legacy'])('reads and writes rules of iptables-%s with what they match', (backend) => {
    const script = `mount -t proc proc ${root}/proc
      printf '*filter\n%s\nCOMMIT\n' "$2" | chroot ${root} /usr/sbin/$1-restore -w 5
      chroot ${root} /usr/sbin/$1-save -t filter`;
    const matches = '-p tcp -m conntrack --ctstate NEW -m comment --comment here -j REJECT --reject-with';
    for (const [program, rule] of [
      ['iptables', `-A FORWARD -s 192.0.2.0/24 ${matches} icmp-port-unreachable`],
      ['ip6tables', `-A FORWARD -s 2001:db8::/32 ${matches} icmp6-port-unreachable`],
    ] as const) {
      const argv = ['--mount', '--net', '--pid', '--fork', 'bash', '-ec', script, '-', `${program}-${backend}`, rule];
      expect(execFileSync('unshare', argv, { encoding: 'utf8', stdio: 'pipe' })).toContain(rule);
    }
  });

  test('holds the parts of the agent where it looks for them, and no shell', () => {
    for (const file of [
      'unbounded/apps/cni/build/unbounded-cni',
      'unbounded/bpf/build/unbounded_encap.bpf.o',
      'usr/bin/wireguard-go',
    ])
      expect(existsSync(join(root, file)), file).toBe(true);
    const programs = ['agent-start', 'chrt', 'node', 'pod-start', 'tailnet-device', 'wireguard-go'];
    expect(readdirSync(join(root, 'usr/bin')).sort()).toEqual(programs);
    for (const name of readdirSync(join(root, 'usr/sbin'))) expect(name).toMatch(/tables/);
    expect(existsSync(join(root, 'bin'))).toBe(false);
  });
});

const NAMESPACES = ['--mount', '--net', '--pid', '--fork', '--kill-child'];

/** Runs what it is told as the agent's container would: own mounts and network, /proc/sys read-only, few capabilities. */
const inContainer = (capabilities: string, ...command: string[]): string => {
  const script = `mount -t proc proc ${root}/proc; mount --bind ${root}/proc/sys ${root}/proc/sys
    mount -o remount,bind,ro ${root}/proc/sys; exec setpriv --bounding-set=-all,+sys_chroot,${capabilities} chroot ${root} "$@"`;
  return execFileSync('unshare', [...NAMESPACES, 'bash', '-ec', script, '-', ...command], {
    encoding: 'utf8',
    stdio: 'pipe',
  });
};

/** Prints which capabilities it has, and whether it can write settings. */
const lookAround = `const fs = require('node:fs');
  const write = (file, value) => { try { fs.writeFileSync('/proc/sys/' + file, value); return 'written'; } catch ({ code }) { return code; } };
  const status = fs.readFileSync('/proc/self/status', 'utf8');
  console.log(JSON.stringify({
    permitted: /CapPrm:\\s*(\\w+)/.exec(status)[1],
    net: write('net/ipv4/ip_forward', '1'),
    kernel: write('kernel/panic', '0'),
  }));`;
const bits = (...numbers: number[]): string =>
  numbers
    .reduce((sum, bit) => sum | (1n << BigInt(bit)), 0n)
    .toString(16)
    .padStart(16, '0');
/** Numbers of linux/capability.h. */
const [NET_ADMIN, SYS_CHROOT] = [12, 18];

describe('agent-start', () => {
  test('makes settings of the network writable, nothing else, and gives up what that takes', () => {
    const seen = JSON.parse(
      inContainer('+net_admin,+sys_admin', '/usr/bin/agent-start', '/usr/bin/node', '-e', lookAround),
    );
    expect(seen).toEqual({ permitted: bits(NET_ADMIN, SYS_CHROOT), net: 'written', kernel: 'EROFS' });
  });

  test('is what makes the difference', () => {
    expect(JSON.parse(inContainer('+net_admin,+sys_admin', '/usr/bin/node', '-e', lookAround))).toMatchObject({
      net: 'EROFS',
    });
  });

  test('without the right to mount says what the container lacks', () => {
    expect(() => inContainer('+net_admin', '/usr/bin/agent-start', '/usr/bin/node', '-e', '')).toThrow(
      'the container needs the capability SYS_ADMIN',
    );
  });

  test('names a program that cannot be run', () => {
    expect(() => inContainer('+sys_admin', '/usr/bin/agent-start', '/usr/bin/absent')).toThrow('/usr/bin/absent');
  });
});

/** Where the keeper of tailnet devices and its programs run: not root, and with capabilities in the bounding set alone. */
const inKeeper = (capabilities: string, ...command: string[]): string => {
  const script = `mount -t proc proc /proc; mount -t proc proc ${root}/proc; mkdir -p ${root}/run/netns; touch ${root}/run/netns/pod
    mkdir -p ${root}/dev/net; [ -e ${root}/dev/net/tun ] || mknod -m 660 ${root}/dev/net/tun c 10 200
    unshare --net=${root}/run/netns/pod ip tuntap add dev ts0 mode tun vnet_hdr
    exec setpriv --bounding-set=-all,+sys_chroot,+setuid,+setgid${capabilities} chroot --userspec=65532:0 --groups= ${root} "$@"`;
  return execFileSync('unshare', [...NAMESPACES, 'bash', '-ec', script, '-', ...command], {
    encoding: 'utf8',
    stdio: 'pipe',
  });
};
/** Prints user, capabilities and network namespace. */
const whoAmI = `const fs = require('node:fs');
  const status = fs.readFileSync('/proc/self/status', 'utf8');
  console.log(JSON.stringify({
    user: process.getuid(),
    permitted: /CapPrm:\\s*(\\w+)/.exec(status)[1],
    isInPod: fs.readlinkSync('/proc/self/ns/net') === 'net:[' + fs.statSync('/run/netns/pod').ino + ']',
  }));`;
const KEEPERS = ',+sys_admin,+net_admin';
const IN_POD = ['/usr/bin/pod-start', 'network', '/run/netns/pod'];
const LOOK = ['/usr/bin/node', '-e', whoAmI];

describe('pod-start', () => {
  test('has its two capabilities from the image, and is the only program that has any', () => {
    const found = bash(`getcap -r ${root}`).trim();
    expect(found).toBe(`${root}/usr/bin/pod-start cap_net_admin,cap_sys_admin=ep`);
  });

  test('enters a pod for a user who has no capability, and keeps one of two', () => {
    const seen = { user: 65_532, permitted: bits(), isInPod: false };
    expect(JSON.parse(inKeeper(KEEPERS, ...LOOK))).toEqual(seen);
    const inPod = { ...seen, permitted: bits(NET_ADMIN), isInPod: true };
    expect(JSON.parse(inKeeper(KEEPERS, ...IN_POD, ...LOOK))).toEqual(inPod);
  });

  test('hands a pod’s TUN to a program that stays outside and has nothing', () => {
    const seen = { user: 65_532, permitted: bits(), isInPod: false };
    const look = [...LOOK.slice(0, 2), `${whoAmI} console.log(fs.readlinkSync('/proc/self/fd/3'));`];
    const [who, tun] = inKeeper(KEEPERS, '/usr/bin/pod-start', 'tun', '/run/netns/pod', 'ts0', ...look).split('\n');
    expect([JSON.parse(who!), tun]).toEqual([seen, '/dev/net/tun']);
  });

  test('has no more than its container is given', () => {
    expect(() => inKeeper(',+net_admin', ...IN_POD, ...LOOK)).toThrow('Operation not permitted');
  });
});

test('programs in Go find the public authorities where they look for them', () => {
  const found = readFileSync(join(root, 'etc/ssl/certs/ca-certificates.crt'), 'utf8');
  expect(found.match(/-----BEGIN CERTIFICATE-----/g)!.length).toBeGreaterThan(100);
});
