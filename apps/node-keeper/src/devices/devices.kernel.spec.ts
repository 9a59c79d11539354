import { execFileSync } from 'node:child_process';
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type DeviceState, deviceState, type DeviceUnit } from '@unbounded/keeper-protocol';
import { openTun } from '@unbounded/netlink';
import { createLogger } from '@unbounded/telemetry';
import { until } from '@unbounded/testing';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Keeper } from '../keeper.ts';
import { createDeviceKeeper, deviceFolders } from './device-keeper.ts';
import { createTestPod, datagram, lookAt, type TestPod } from './test-pod.testdata.ts';

/**
 * The keeper with the real pod-start in namespaces of the test. The device's process is one that only stays: that of a tailnet is in
 * `tools/test matrix tailnet`.
 */

const POD = '0f6e5b1c-1111-4222-8333-444455556666';
const TABLE = 5252;
const zeros = '0'.repeat(16);

const bin = mkdtempSync(join(tmpdir(), 'devices-bin-'));
const programs = { podStart: join(bin, 'pod-start'), device: join(bin, 'device'), devicesDir: '/devices', caFile: '' };

let folder: string;
let pod: TestPod;
let others: TestPod[];
let keepers: Keeper[];

beforeAll(() => {
  execFileSync(resolve('deploy/image/build.sh'), [programs.podStart, 'pod-start'], { stdio: 'inherit' });
  writeFileSync(programs.device, '#!/bin/sh\nexec sleep 1000\n', { mode: 0o755 });
});
afterAll(() => rmSync(bin, { recursive: true }));

const NETWORK = {
  addresses: [],
  rules: [
    { priority: 5200, to: '100.64.0.0/10', table: TABLE },
    { priority: 5200, to: 'fd7a:115c:a1e0::/48', table: TABLE },
  ],
  routes: ['100.64.0.0/10', 'fd7a:115c:a1e0::/48'].flatMap((to) => [
    { table: TABLE, to, kind: 'device' as const, metric: 1 },
    { table: TABLE, to, kind: 'unreachable' as const, metric: 4096 },
  ]),
};
const DEVICE = { hostName: 'web-0', controlURL: 'https://tailnet.example.com' };
const unitOf = (rest: Partial<DeviceUnit> = {}): DeviceUnit => ({
  ...{ podUID: POD, netns: pod.netns, device: DEVICE },
  ...{ network: NETWORK, ...rest },
});
const ADDRESSES = ['100.64.0.7', 'fd7a:115c:a1e0::7'];
const withAddresses = (addresses: readonly string[] = ADDRESSES): Partial<DeviceUnit> => ({
  network: { ...NETWORK, addresses },
});

const folders = () => deviceFolders(folder);
const unitFile = (): string => join(folders().unitsDir, `${POD}.json`);
const write = (unit: object): void => writeFileSync(unitFile(), JSON.stringify(unit));
const makeKeeper = (over: Partial<typeof programs> & { readonly longestLookMs?: number } = {}): Keeper => {
  const logger = createLogger({ name: 'test', level: 'silent' });
  const keeper = createDeviceKeeper({ ...programs, longestLookMs: 60_000, ...over, ...folders(), logger });
  keepers.push(keeper);
  return keeper;
};
const tendUntil = async <T>(keeper: Keeper, what: string, found: () => T | undefined | false): Promise<T> => {
  const began = performance.now();
  for (;;) {
    await keeper.tend(performance.now());
    const value = found();
    if (value !== undefined && value !== false) return value;
    if (performance.now() - began > 15_000) throw new Error(`not within 15000 ms: ${what}`);
    await sleep(20);
  }
};
const state = (): DeviceState | undefined => {
  const file = join(folders().statesDir, `${POD}.json`);
  return existsSync(file) ? deviceState.read(file) : undefined;
};
const pids = (): number[] =>
  (existsSync(folders().pidsDir) ? readdirSync(folders().pidsDir) : []).map((name) =>
    Number(readFileSync(join(folders().pidsDir, name), 'utf8').split(' ')[0]),
  );
const isAlive = (pid: number): boolean =>
  existsSync(`/proc/${pid}/fd`) && !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
/** The process of the device, when it has become that. */
const device = (): number | undefined =>
  pids().find((pid) => isAlive(pid) && readFileSync(`/proc/${pid}/cmdline`, 'utf8').startsWith('sleep\0'));
interface LinkShown {
  readonly ifindex: number;
  readonly mtu: number;
  readonly txqlen: number;
  readonly flags: string[];
  readonly operstate: string;
}
const linkOf = (of: TestPod): LinkShown => (JSON.parse(of.ip('-j', 'link', 'show', 'ts0')) as [LinkShown])[0];
const addressesOf = (of: TestPod): string[] =>
  [...of.ip('-o', 'addr', 'show', 'dev', 'ts0', 'scope', 'global').matchAll(/inet6? (\S+)/g)].map(([, text]) => text!);
const started = async (keeper = makeKeeper()): Promise<[Keeper, number]> => [
  keeper,
  await tendUntil(keeper, 'the device runs', device),
];
const makePod = (name: string): TestPod => {
  const made = createTestPod(`${name}-${process.pid}`);
  others.push(made);
  return made;
};

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'devices-'));
  [keepers, others] = [[], []];
  pod = makePod('pod');
  mkdirSync(folders().unitsDir);
  write(unitOf());
});
afterEach(() => {
  for (const pid of pids()) if (isAlive(pid)) process.kill(pid, 'SIGKILL');
  for (const one of others) one.remove();
  rmSync(folder, { recursive: true });
});

describe('a pod that is a device', () => {
  test('has its network before the device’s process, which has the TUN and no right', async () => {
    expect([pod.leaving('100.64.9.9'), pod.leaving('fd7a:115c:a1e0::99')]).toEqual([3, 3]);
    const [, pid] = await started();
    expect(linkOf(pod)).toMatchObject({
      mtu: 1280,
      txqlen: 3000,
      flags: expect.arrayContaining(['UP', 'POINTOPOINT']),
    });
    expect(pod.routes(TABLE)).toEqual([
      '100.64.0.0/10 dev ts0 proto 117 scope link metric 1',
      'unreachable 100.64.0.0/10 proto 117 metric 4096',
      'fd7a:115c:a1e0::/48 dev ts0 proto 117 metric 1 pref medium',
      'unreachable fd7a:115c:a1e0::/48 dev lo proto 117 metric 4096 pref medium',
    ]);
    expect(pod.rules()).toEqual([
      '5200: from all to 100.64.0.0/10 lookup 5252 proto 117',
      '5200: from all to fd7a:115c:a1e0::/48 lookup 5252 proto 117',
    ]);
    expect(lookAt(pid)).toEqual({
      ...{ isInOwnNamespace: true, capabilities: [zeros, zeros, zeros, zeros], third: '/dev/net/tun' },
      argv: ['sleep', '1000'],
    });
    expect(state()).toMatchObject({ netns: pod.netns, hasIPv6: true, starts: 1 });
  });

  test('has its network alone while nothing is known of its device', async () => {
    const { device: _, ...alone } = unitOf();
    write(alone);
    const keeper = makeKeeper();
    await tendUntil(keeper, 'the network stands', () => state()?.network);
    for (let look = 0; look < 3; look++) await keeper.tend(performance.now());
    expect([pids(), pod.leaving('100.64.9.9')]).toEqual([[], 0]);
    write(unitOf());
    expect(await tendUntil(keeper, 'the device runs', device)).toBeGreaterThan(0);
  });

  test('sends nothing for the tailnet by another interface, whether the process runs or not', async () => {
    const [, pid] = await started();
    const tailnet = ['100.64.9.9', 'fd7a:115c:a1e0::99'];
    expect(tailnet.map(pod.leaving)).toEqual([0, 0]);
    process.kill(pid, 'SIGKILL');
    await until('it has ended', () => !isAlive(pid));
    expect(tailnet.map(pod.leaving)).toEqual([0, 0]);
    expect(['203.0.113.1', '2001:db8::1'].map(pod.leaving)).toEqual([3, 3]);
  });

  test('gets the addresses of its device, and others, without a new process', async () => {
    const [keeper, pid] = await started();
    write(unitOf(withAddresses()));
    await tendUntil(keeper, 'it has them', () => addressesOf(pod).length === 2);
    expect(addressesOf(pod).sort()).toEqual(['100.64.0.7/32', 'fd7a:115c:a1e0::7/128']);
    const digest = state()?.network;
    write(unitOf(withAddresses(['100.64.0.8'])));
    await tendUntil(keeper, 'it is told', () => state()?.network !== digest);
    expect(addressesOf(pod)).toEqual(['100.64.0.8/32']);
    expect(device()).toBe(pid);
  });

  test('keeps its interface, index and addresses when the process dies, and gets another one', async () => {
    write(unitOf(withAddresses()));
    const [keeper, pid] = await started();
    const [index, addresses] = [linkOf(pod).ifindex, addressesOf(pod)];
    process.kill(pid, 'SIGKILL');
    await until('it has ended', () => !isAlive(pid));
    expect(pod.ip('-o', 'link')).toContain('ts0:');
    expect([linkOf(pod).ifindex, addressesOf(pod)]).toEqual([index, addresses]);
    await tendUntil(keeper, 'another one runs', () => device() !== undefined && device() !== pid);
    expect([linkOf(pod).ifindex, addressesOf(pod), state()?.starts]).toEqual([index, addresses, 2]);
  });

  test('hears by its device what is to it, from devices alone', async () => {
    const rows = [
      ['a device', '100.64.0.9', '100.64.0.7', 1],
      ['a device, to its other address', '100.64.0.9', '10.1.0.2', 1],
      ['a device by IPv6', 'fd7a:115c:a1e0::9', 'fd7a:115c:a1e0::7', 1],
      ['who claims to be a pod', '10.1.0.9', '100.64.0.7', 0],
      ['who claims to be a pod with an address of the tailnet’s range', '100.65.0.3', '100.64.0.7', 0],
      ['who claims to be a host', '203.0.113.1', '100.64.0.7', 0],
      ['who claims to be a pod by IPv6', 'fd00:1::9', 'fd7a:115c:a1e0::7', 0],
      ['a device, to another pod', '100.64.0.9', '10.1.0.77', 0],
      ['a device, to another pod by IPv6', 'fd7a:115c:a1e0::9', 'fd00:1::77', 0],
    ] as const;
    const throwing = { table: TABLE, to: '100.65.0.0/16', kind: 'throw' as const, metric: 0 };
    const { device: _, ...alone } = unitOf();
    write({ ...alone, network: { ...NETWORK, addresses: ADDRESSES, routes: [throwing, ...NETWORK.routes] } });
    const keeper = makeKeeper();
    await tendUntil(keeper, 'the network stands', () => state()?.network);
    const netnsFd = openSync(pod.netns, 'r');
    using tun = openTun({ name: 'ts0', netnsFd, onPacket: () => undefined });
    closeSync(netnsFd);
    await until('the interface is up', () => linkOf(pod).operstate === 'UP');
    const heard = rows.map(([whom, from, to]) => {
      const count = pod.arriving(from, to, () => expect(tun.inject(datagram(from, to))).toBe(0));
      return [whom, from, to, count];
    });
    expect(heard).toEqual(rows);
  });

  test('without IPv6 has the IPv4 of its device, and nothing for the tailnet leaves by another interface', async () => {
    pod.setIPv6(false);
    write(unitOf(withAddresses()));
    await started();
    expect(state()).toMatchObject({ hasIPv6: false });
    expect(addressesOf(pod)).toEqual(['100.64.0.7/32']);
    expect(pod.routes(TABLE)).toHaveLength(3);
    expect(pod.leaving('100.64.9.9')).toBe(0);
  });

  test('whose sandbox is another has the process there, and never two', async () => {
    const [keeper, pid] = await started();
    const next = makePod('next');
    write(unitOf({ netns: next.netns }));
    const other = await tendUntil(keeper, 'it runs there', () => {
      const found = device();
      return found !== undefined && found !== pid && found;
    });
    expect([isAlive(pid), pids()]).toEqual([false, [other]]);
    expect(linkOf(next).mtu).toBe(1280);
  });

  test('has a device, a process and an interface of its own beside another pod of the node', async () => {
    const [keeper, pid] = await started();
    const [next, podUID] = [makePod('next'), '0f6e5b1c-2222-4222-8333-444455556666'];
    const unit = unitOf({ podUID, netns: next.netns, ...withAddresses(['100.64.0.8']) });
    writeFileSync(join(folders().unitsDir, `${podUID}.json`), JSON.stringify(unit));
    await tendUntil(keeper, 'it runs, too', () => pids().filter(isAlive).length === 2);
    expect([isAlive(pid), addressesOf(next), addressesOf(pod)]).toEqual([true, ['100.64.0.8/32'], []]);
    expect([pod, next].map((one) => one.leaving('100.64.9.9'))).toEqual([0, 0]);
  });

  test('has another process at once although the network of another pod takes its time', async () => {
    const other = makePod('slow');
    const [hold, podStart] = [join(bin, 'hold'), join(bin, 'slow-start')];
    const wait = `case "$*" in *${other.netns}*) while [ -e ${hold} ]; do sleep 0.05; done ;; esac`;
    writeFileSync(podStart, `#!/bin/sh\n${wait}\nexec ${programs.podStart} "$@"\n`, { mode: 0o755 });
    writeFileSync(hold, '');
    const [keeper, pid] = await started(makeKeeper({ podStart, longestLookMs: 1000 }));
    const podUID = '0f6e5b1c-2222-4222-8333-444455556666';
    writeFileSync(join(folders().unitsDir, `${podUID}.json`), JSON.stringify(unitOf({ podUID, netns: other.netns })));
    const look = keeper.tend(performance.now()).then(() => 'looked'); // the slow one is begun
    expect(await Promise.race([look, sleep(5000, 'waits')])).toBe('looked');
    process.kill(pid, 'SIGKILL');
    await until('it has ended', () => !isAlive(pid));
    await tendUntil(keeper, 'another process', device);
    expect(pids().filter(isAlive)).toHaveLength(1);
    rmSync(hold);
    await tendUntil(keeper, 'that of the other pod', () => pids().filter(isAlive).length === 2);
  });

  test('that is none any more is as it was before', async () => {
    pod.ip('rule', 'add', 'pref', '5300', 'to', '198.51.100.0/24', 'lookup', '77');
    const [before, rules, tables] = [pod.ip('-o', 'addr'), pod.rules(), pod.tables()];
    const [keeper, pid] = await started();
    rmSync(unitFile());
    await tendUntil(keeper, 'nothing is told of it', () => state() === undefined);
    expect([isAlive(pid), pids(), pod.routes(TABLE)]).toEqual([false, [], []]);
    expect([pod.ip('-o', 'addr'), pod.rules(), pod.tables()]).toEqual([before, rules, tables]);
  });

  test('runs where its state cannot be written, which is written as soon as that is possible', async () => {
    const stateFile = join(folders().statesDir, `${POD}.json`);
    mkdirSync(stateFile, { recursive: true });
    const [keeper] = await started();
    for (let look = 0; look < 3; look++) await keeper.tend(performance.now());
    expect(readdirSync(folders().statesDir)).toEqual([`${POD}.json`]);
    rmdirSync(stateFile);
    await keeper.tend(performance.now());
    expect(state()).toMatchObject({ netns: pod.netns, starts: 1 });
  });

  test('that is gone leaves no process and no file', async () => {
    const [keeper, pid] = await started();
    pod.remove();
    rmSync(unitFile());
    await tendUntil(keeper, 'nothing is told of it', () => state() === undefined);
    expect([isAlive(pid), pids()]).toEqual([false, []]);
  });

  test('that is gone while its process rests after its end leaves no file', async () => {
    const [keeper, pid] = await started();
    process.kill(pid, 'SIGKILL');
    await until('it has ended', () => !isAlive(pid));
    await keeper.tend(performance.now());
    pod.remove();
    rmSync(unitFile());
    await tendUntil(keeper, 'nothing is told of it', () => state() === undefined);
    expect(pids()).toEqual([]);
  });
});

describe('a keeper after another', () => {
  test('finds the process, and leaves it as it is', async () => {
    const [, pid] = await started();
    const next = makeKeeper();
    for (let look = 0; look < 3; look++) await next.tend(performance.now());
    expect([device(), pids(), next.running()]).toEqual([pid, [pid], [expect.stringContaining(POD)]]);
  });

  test('ends the process of a unit that went meanwhile', async () => {
    const [, pid] = await started();
    rmSync(unitFile());
    await tendUntil(makeKeeper(), 'nothing is told of it', () => state() === undefined);
    expect(isAlive(pid)).toBe(false);
  });

  test('repairs what was changed in the pod meanwhile', async () => {
    await started();
    pod.ip('rule', 'del', 'pref', '5200');
    const next = makeKeeper();
    await tendUntil(next, 'both rules are there', () => pod.rules().length === 2);
    expect(pod.leaving('100.64.9.9')).toBe(0);
  });
});

describe('a unit starts no process', () => {
  const problemOf = async (): Promise<string> => {
    const keeper = makeKeeper();
    const problem = await tendUntil(keeper, 'the problem is told', () => state()?.problem);
    for (let look = 0; look < 3; look++) await keeper.tend(performance.now());
    expect(pids()).toEqual([]);
    return problem;
  };

  test.each([
    ['a bridge', ['link', 'add', 'ts0', 'type', 'bridge']],
    ['a TAP', ['tuntap', 'add', 'dev', 'ts0', 'mode', 'tap', 'vnet_hdr']],
  ])('for a pod with an interface of that name of its own, %s', async (_, made) => {
    pod.ip(...made);
    expect(await problemOf()).toContain('has an interface ts0 that is none of ours');
    expect(pod.rules()).toEqual([]);
    // Also when nothing is asked for any more.
    rmSync(unitFile());
    await tendUntil(keepers[0]!, 'nothing is told of it', () => state() === undefined);
    expect(pod.ip('-br', 'link')).toContain('ts0');
  });

  test('for the namespace of the node', async () => {
    const own = join('/run/netns', `own-${process.pid}`);
    writeFileSync(own, '');
    execFileSync('mount', ['--bind', '/proc/self/ns/net', own]);
    try {
      write(unitOf({ netns: own }));
      expect(await problemOf()).toContain('no network namespace of a pod that can be entered');
    } finally {
      execFileSync('umount', [own]);
      rmSync(own);
    }
  });

  test('for a file that is no namespace, or none', async () => {
    write(unitOf({ netns: '/run/netns/there-is-none' }));
    expect(await problemOf()).toContain('/run/netns/there-is-none');
  });

  test.each([
    ['a path out of the folder', { netns: '/run/netns/../../proc/1/ns/net' }, 'netns'],
    ['the namespace of a process', { netns: '/proc/1/ns/net' }, 'netns'],
    ['a name with a space', { device: { ...DEVICE, hostName: 'web -state /etc' } }, 'hostName'],
    [
      'a table of the kernel',
      { network: { ...NETWORK, rules: [{ priority: 1, to: '0.0.0.0/0', table: 254 }] } },
      'table',
    ],
    ['two addresses of a family', withAddresses(['100.64.0.1', '100.64.0.2']), 'one address of each family'],
    [
      'an address of the server with a password',
      { device: { ...DEVICE, controlURL: 'https://a:b@example.com' } },
      'controlURL',
    ],
  ])('with %s', async (_, rest, field) => {
    write(unitOf(rest));
    const keeper = makeKeeper();
    const told = await tendUntil(keeper, 'it is refused', () =>
      existsSync(folders().rejectedFile) ? readFileSync(folders().rejectedFile, 'utf8') : undefined,
    );
    expect(told).toContain(field);
    expect([state(), pids()]).toEqual([undefined, []]);
  });
});
