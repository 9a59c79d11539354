import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { nodeCommand } from '@unbounded/config/node-command';
import { appEntry, until } from '@unbounded/testing';
import { generatePrivateKey, publicKeyOf } from '@unbounded/wireguard';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

/**
 * The keeper as the first process of its container: whatever goes wrong, it must not end, or all tunnels end with it. A program
 * that only waits stands for wireguard-go.
 */

/** Notes of processes stand on a disk of its own, which is full if wanted. */
const ENTER = `set -e
mount -t tmpfs -o size=16k tmpfs "$1/pids"
[ "$2" = roomy ] || head -c 64k /dev/zero > "$1/pids/filler" 2>/dev/null || true
shift 2; exec "$@"`;

let folder: string;
let holder: ChildProcess;
let log: string;
let keeper: number;

const childrenOf = (pid: number): number[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number);
/** Fields of proc(5) behind the name: state first. */
const stateOf = (pid: number): string =>
  readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /s, '')
    .charAt(0);
const units = (): string => join(folder, 'units');
const deviceOf = (pid: number): string => readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')[0] ?? '';
/** Processes of tunnels by device. */
const tunnels = (): Map<string, number> => {
  const found = childrenOf(keeper).filter((pid) => stateOf(pid) !== 'Z');
  return new Map(found.map((pid) => [deviceOf(pid), pid]));
};
const ask = (device: string): void => {
  const peers = [{ publicKey: publicKeyOf(generatePrivateKey()), allowedIps: ['100.64.2.0/24'] }];
  const unit = { device, privateKeyFile: '/etc/wireguard/none.priv', listenPort: 51820, peers };
  writeFileSync(join(folder, 'unit.new'), JSON.stringify(unit));
  renameSync(join(folder, 'unit.new'), join(units(), `${device}.json`));
};
const running = (device: string): Promise<number> => until(`${device} runs`, () => tunnels().get(device));

const start = async (disk: 'roomy' | 'full'): Promise<void> => {
  const main = [...nodeCommand, appEntry('node-keeper'), '--units-dir', units()];
  const flags = ['--pids-dir', join(folder, 'pids'), '--wireguard-go', join(folder, 'wireguard-go')];
  const isolate = [
    '--pid',
    '--fork',
    '--kill-child=SIGKILL',
    '--mount-proc',
    '--mount',
    '--net',
    '--propagation',
    'private',
  ];
  holder = spawn('unshare', [...isolate, 'sh', '-c', ENTER, 'sh', folder, disk, ...main, ...flags], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  holder.stdout!.setEncoding('utf8').on('data', (text: string) => (log += text));
  holder.stdout!.on('error', () => undefined);
  keeper = await until('the keeper is there', () => childrenOf(holder.pid!)[0]);
};

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'pid1-'));
  for (const name of ['units', 'pids']) mkdirSync(join(folder, name));
  writeFileSync(join(folder, 'wireguard-go'), '#!/bin/bash\nexec -a "$2" sleep infinity\n', { mode: 0o755 });
  log = '';
});
afterEach(async () => {
  const ended = new Promise((resolve) => holder.once('exit', resolve));
  holder.kill('SIGKILL');
  await ended;
  rmSync(folder, { recursive: true });
});

/** The keeper looks at everything again and again: a new unit is seen only by a look that came after. */
let count = 30_000;
const looksOnceMore = async (): Promise<void> => {
  const device = `wg${++count}`;
  ask(device);
  await running(device);
};

describe('the keeper as PID 1', () => {
  test('keeps a process that it cannot note on a full disk, once', async () => {
    await start('full');
    ask('wg51820');
    const pid = await running('wg51820');
    await looksOnceMore();
    await looksOnceMore();
    expect(tunnels().get('wg51820')).toBe(pid);
    expect(tunnels().size).toBe(3);
    expect(log).toContain('cannot note the process');
    rmSync(join(units(), 'wg51820.json'));
    await until('it is ended', () => !tunnels().has('wg51820'));
  });

  test.each([
    ['is gone', () => renameSync(units(), `${units()}.away`)],
    [
      'is a file',
      () => {
        renameSync(units(), `${units()}.away`);
        writeFileSync(units(), '');
      },
    ],
    [
      'is a link that leads in a circle',
      () => {
        renameSync(units(), `${units()}.away`);
        execFileSync('ln', ['-s', units(), units()]);
      },
    ],
  ])('goes on with what runs, and brings back what dies, while the folder of units %s', async (_, spoil) => {
    await start('roomy');
    ask('wg51820');
    const pid = await running('wg51820');
    spoil();
    process.kill(pid, 'SIGKILL');
    const next = await until('it is back', () => {
      const found = tunnels().get('wg51820');
      return found !== pid && found;
    });
    rmSync(units(), { force: true });
    renameSync(`${units()}.away`, units());
    await looksOnceMore();
    expect(tunnels().get('wg51820')).toBe(next);
  });

  test('leaves no dead child behind, and outlives that a child vanishes as it is to be ended', async () => {
    await start('roomy');
    for (let round = 0; round < 5; round++) {
      ask('wg51820');
      const pid = await running('wg51820');
      rmSync(join(units(), 'wg51820.json'));
      process.kill(pid, 'SIGKILL');
      await until('it is gone', () => !existsSync(`/proc/${pid}`));
    }
    await looksOnceMore();
    expect(childrenOf(keeper).map(stateOf)).not.toContain('Z');
  });

  test('outlives that nobody takes its log any more', async () => {
    await start('roomy');
    await looksOnceMore();
    holder.stdout!.destroy();
    await looksOnceMore();
    await looksOnceMore();
    expect(existsSync(`/proc/${keeper}`)).toBe(true);
  });
});
