import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { keeperProcesses } from '@unbounded/keeper-protocol';
import { createLogger } from '@unbounded/telemetry';
import { until } from '@unbounded/testing';
import { generatePrivateKey, publicKeyOf } from '@unbounded/wireguard';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { createKeeper, type Keeper } from './keeper.ts';

/**
 * The keeper with the real wireguard-go on a persistent TUN. The program is started by a wrapper that enters the
 * namespace of the test, where the TUN is.
 */

const cache = process.env['UNBOUNDED_CACHE'] ?? join(homedir(), '.cache/unbounded');
const wireguardGo = join(process.env['UNBOUNDED_ASSETS'] ?? cache, 'bin/wireguard-go');
const device = `wg${20_000 + (process.pid % 40_000)}`; // its socket in /var/run/wireguard is the machine's
const socket = `/var/run/wireguard/${device}.sock`;
const netns = `keeper-${process.pid}`;
const key = generatePrivateKey();
const peerKey = publicKeyOf(generatePrivateKey());
const keyFile = `/etc/wireguard/${netns}.priv`;

let folder: string;
let keepers: Keeper[];

const run = (...argv: string[]): string => execFileSync(argv[0]!, argv.slice(1), { encoding: 'utf8' });
const makeKeeper = (logger = createLogger({ name: 'test', level: 'error' })): Keeper => {
  const keeper = createKeeper({
    unitsDir: join(folder, 'units'),
    pidsDir: join(folder, 'pids'),
    rejectedFile: join(folder, 'rejected.json'),
    processesFile: join(folder, 'processes.json'),
    program: join(folder, 'wireguard-go'),
    relay: { unitFile: join(folder, 'relay.json'), stateFile: join(folder, 'relay-state.json') },
    logger,
  });
  keepers.push(keeper);
  return keeper;
};
const unitFile = (): string => join(folder, 'units', `${device}.json`);
const peers = [{ publicKey: peerKey, endpoint: '192.0.2.1:51820', allowedIps: ['100.64.2.0/24'] }];
const unit = { device, privateKeyFile: keyFile, listenPort: 51820, peers };
const writeUnit = (value: object): void => writeFileSync(unitFile(), JSON.stringify(value));
/** What the agent makes metrics of. */
const reported = () => keeperProcesses.read(join(folder, 'processes.json')).processes;
const pidFile = (): string => join(folder, 'pids', device);
/** NaN: no process is recorded. */
const pidOf = (): number => Number(existsSync(pidFile()) ? readFileSync(pidFile(), 'utf8').split(' ')[0] : undefined);
/** As the keeper sees it: a process that has given up its memory (no /proc/PID/exe) is not yet a zombie for a moment. */
const isAlive = (pid: number): boolean => {
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
};
const indexOf = (): number =>
  (JSON.parse(run('ip', '-n', netns, '-j', 'link', 'show', device)) as { ifindex: number }[])[0]!.ifindex;
const isConfigured = (): boolean => {
  try {
    const [own, peer] = run('wg', 'show', device, 'dump')
      .trim()
      .split('\n')
      .map((line) => line.split('\t'));
    return own?.[0] === key && peer?.[0] === peerKey && peer[3] === '100.64.2.0/24' && peer[2] === '192.0.2.1:51820';
  } catch {
    return false; // the process does not answer yet
  }
};

/** Looks more often than the program does, until it is so. */
const tendUntil = async (keeper: Keeper, isSo: () => boolean): Promise<void> => {
  const began = performance.now();
  while (!isSo()) {
    if (performance.now() - began > 15_000) throw new Error('not within 15000 ms: the process runs and is configured');
    await keeper.tend(performance.now());
    await sleep(20);
  }
};

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'keeper-'));
  keepers = [];
  run('ip', 'netns', 'add', netns);
  run('ip', '-n', netns, 'tuntap', 'add', 'dev', device, 'mode', 'tun', 'vnet_hdr');
  mkdirSync('/etc/wireguard', { recursive: true, mode: 0o700 });
  writeFileSync(keyFile, key, { mode: 0o600 });
  writeFileSync(
    join(folder, 'wireguard-go'),
    `#!/bin/sh\nexec nsenter --net=/run/netns/${netns} ${wireguardGo} "$@"\n`,
    { mode: 0o755 },
  );
  mkdirSync(join(folder, 'units'));
  writeUnit(unit);
});
afterEach(async () => {
  rmSync(unitFile(), { force: true });
  for (const keeper of keepers) await keeper.tend(performance.now());
  run('ip', 'netns', 'delete', netns);
  rmSync(keyFile, { force: true });
  rmSync(socket, { force: true });
  rmSync(folder, { recursive: true });
});

describe('the keeper', () => {
  test('starts the process of a unit, and gives it key, port and peers', async () => {
    const keeper = makeKeeper();
    await tendUntil(keeper, isConfigured);
    expect(keeper.running()).toEqual([device]);
    expect(reported()).toEqual({ [device]: { isRunning: true, starts: 1 } });
  });

  test('starts a killed process again after a rest of 0.1 s, with all of that, on the same device', async () => {
    const keeper = makeKeeper();
    await tendUntil(keeper, isConfigured);
    const [pid, index] = [pidOf(), indexOf()];
    process.kill(pid, 'SIGKILL');
    await until('it has ended', () => !isAlive(pid));
    const diedMs = performance.now();
    await keeper.tend(diedMs);
    expect(reported()).toEqual({ [device]: { isRunning: false, starts: 1 } });
    await keeper.tend(diedMs + 99);
    expect(pidOf()).toBe(pid); // the note of the one that died
    await keeper.tend(diedMs + 100);
    expect(pidOf()).not.toBe(pid);
    await tendUntil(keeper, isConfigured);
    expect(indexOf()).toBe(index);
    expect(reported()).toEqual({ [device]: { isRunning: true, starts: 2 } });
  });

  test('that is replaced leaves the process running, and its successor finds it', async () => {
    await tendUntil(makeKeeper(), isConfigured);
    const pid = pidOf();
    const successor = makeKeeper();
    await successor.tend(performance.now());
    expect(successor.running()).toEqual([device]);
    expect(pidOf()).toBe(pid);
    process.kill(pid, 'SIGKILL');
    await tendUntil(successor, () => pidOf() !== pid && isConfigured());
  });

  test('ends the process whose unit went away, and leaves the device', async () => {
    const keeper = makeKeeper();
    await tendUntil(keeper, isConfigured);
    const pid = pidOf();
    rmSync(unitFile());
    await tendUntil(keeper, () => !isAlive(pid));
    expect(keeper.running()).toEqual([]);
    expect(indexOf()).toBeGreaterThan(0);
  });

  test.each([
    [
      'a peer of it has a key that is none',
      () => writeUnit({ ...unit, peers: [{ ...unit.peers[0]!, publicKey: 'x' }] }),
    ],
    ['its file is cut short', () => writeFileSync(unitFile(), '{"device":')],
    ['its file cannot be read', () => (rmSync(unitFile()), mkdirSync(unitFile()))],
    [
      'the folder of units cannot be read',
      () => (rmSync(join(folder, 'units'), { recursive: true }), writeFileSync(join(folder, 'units'), '')),
    ],
  ])('keeps the process of a unit running, and brings it back, while %s', async (_, spoil) => {
    const keeper = makeKeeper();
    await tendUntil(keeper, isConfigured);
    const pid = pidOf();
    spoil();
    await keeper.tend(Date.now());
    expect(pidOf()).toBe(pid);
    expect(isAlive(pid)).toBe(true);
    expect(JSON.parse(readFileSync(join(folder, 'rejected.json'), 'utf8'))).toHaveLength(1);
    process.kill(pid, 'SIGKILL');
    await tendUntil(keeper, () => pidOf() !== pid && isConfigured());
    rmSync(join(folder, 'units'), { recursive: true });
    mkdirSync(join(folder, 'units'));
    writeUnit(unit);
    await keeper.tend(Date.now());
    expect(existsSync(join(folder, 'rejected.json'))).toBe(false);
    expect(isConfigured()).toBe(true);
  });

  test('ends the process of a unit that went while there was no keeper', async () => {
    await tendUntil(makeKeeper(), isConfigured);
    const pid = pidOf();
    rmSync(unitFile());
    const successor = makeKeeper();
    await tendUntil(successor, () => !isAlive(pid));
    await successor.tend(performance.now());
    expect([successor.running(), pidOf()]).toEqual([[], NaN]);
  });

  test('that starts while a unit is rejected leaves its process alone', async () => {
    await tendUntil(makeKeeper(), isConfigured);
    const pid = pidOf();
    writeFileSync(unitFile(), '{');
    const successor = makeKeeper();
    await successor.tend(Date.now());
    expect(isAlive(pid)).toBe(true);
    rmSync(unitFile());
    await tendUntil(keepers[0]!, () => !isAlive(pid));
  });

  test('kills a process that does not end when it is asked to, also one of the keeper before it; until then it starts no other', async () => {
    onTestFinished(() => void spawnSync('pkill', ['-KILL', '-f', join(folder, 'wireguard-go')]));
    writeFileSync(
      join(folder, 'wireguard-go'),
      `#!/bin/sh\ntrap '' TERM\necho > ${folder}/traps\nwhile :; do sleep 0.1; done\n`,
    );
    const keeper = makeKeeper();
    await tendUntil(keeper, () => existsSync(join(folder, 'traps')));
    const pid = pidOf();
    rmSync(unitFile());
    await keeper.tend(performance.now());
    const successor = makeKeeper();
    const askedMs = Math.ceil(performance.now()); // whole: 5000 more are exactly that
    await successor.tend(askedMs);
    writeUnit(unit);
    await successor.tend(askedMs + 5000);
    expect([isAlive(pid), pidOf(), reported()]).toEqual([true, pid, { [device]: { isRunning: true, starts: 0 } }]);
    await successor.tend(askedMs + 5001);
    await until('it has ended', () => !isAlive(pid));
    await successor.tend(askedMs + 5002);
    expect(pidOf()).not.toBe(pid);
  });

  test('whose program cannot be run goes on: it tries ever more rarely, says so once, and runs it when that is possible', async () => {
    const program = join(folder, 'wireguard-go');
    renameSync(program, `${program}.away`);
    const said: string[] = [];
    const keeper = makeKeeper(createLogger({ name: 'test', destination: { write: (line) => void said.push(line) } }));
    const beganMs = performance.now();
    for (let look = 0; look < 20; look++) await keeper.tend(beganMs + look * 100);
    expect(keeper.running()).toEqual([]);
    expect(said).toEqual([expect.stringContaining('cannot be run')]);
    renameSync(`${program}.away`, program);
    await keeper.tend(beganMs + 2000); // it rests
    expect(keeper.running()).toEqual([]);
    await keeper.tend(beganMs + 8000);
    expect(keeper.running()).toEqual([device]);
  });
});
