import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createNetns, createTun, type Netns } from '@unbounded/netlink';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { until } from '@unbounded/testing';

/** What runs beside a device, and goes past the kernel's limit for the buffers of its UDP sockets. */

const folder = mkdtempSync(join(tmpdir(), 'buffers-'));
const [podStart, program] = [join(folder, 'pod-start'), join(folder, 'hand-sockets')];
const CAP_NET_ADMIN = 12;
/** File descriptors of the program: the TUN, the socket to the other one, and what it opens itself, of TCP and of UDP. */
const NOT_SHARED = new Set(['3', '4', '5', '6']);
/** The kernel counts what it needs itself, too. */
const RAISED_BYTES = 2 * (7 << 20);
let pod: Netns;

beforeAll(() => {
  execFileSync(resolve('deploy/image/build.sh'), [podStart, 'pod-start'], { stdio: 'inherit' });
  execFileSync('gcc', ['-O1', '-Wall', '-Werror', '-o', program, join(import.meta.dirname, 'hand-sockets.c')]);
  pod = createNetns();
  createTun({ name: 'ts0', netnsFd: pod.fd });
});
afterAll(() => {
  pod.close();
  rmSync(folder, { recursive: true });
});

const status = (pid: string, field: string): string | undefined => {
  try {
    return new RegExp(`^${field}:\\s*(\\S+)`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  } catch {
    return undefined; // it has ended
  }
};
const childrenOf = (parent: number): string[] =>
  readdirSync('/proc').filter((pid) => /^\d+$/.test(pid) && status(pid, 'PPid') === String(parent));

/** The lines that the program prints, while it runs. */
const start = async () => {
  const child = spawn(podStart, ['tun', pod.path, 'ts0', program], { stdio: ['pipe', 'pipe', 'inherit'] });
  let printed = '';
  child.stdout.on('data', (data: Buffer) => (printed += data.toString()));
  await until('it has printed both sizes', () => printed.split('\n').length === 3);
  return {
    child,
    sizes: printed
      .trim()
      .split('\n')
      .map((line) => line.split(' ').map(Number)),
  };
};

describe('a program that has the TUN of a pod', () => {
  test('gets large buffers for its UDP sockets, and for nothing else', async () => {
    const { child, sizes } = await start();
    const [[tcpBefore, tcpAfter], [, udpAfter]] = sizes as [[number, number], [number, number]];
    expect([tcpAfter, udpAfter]).toEqual([tcpBefore, RAISED_BYTES]);
    child.stdin.end('\n');
  });

  test('gets them from a process that can do no more than that, has no TUN, and ends with it', async () => {
    const { child } = await start();
    const [beside, ...more] = childrenOf(child.pid!);
    expect(more).toEqual([]);
    expect(BigInt(`0x${status(beside!, 'CapPrm')}`)).toBe(1n << BigInt(CAP_NET_ADMIN));
    expect(status(beside!, 'NoNewPrivs')).toBe('1');
    expect(readFileSync(`/proc/${beside}/cmdline`, 'utf8')).toBe('pod-start\0buffers\0');
    // It keeps nothing of what it was given: neither the TUN nor a socket.
    const filesOf = (pid: number | string): string[] => readdirSync(`/proc/${pid}/fd`);
    const shared = filesOf(child.pid!).filter((fd) => !NOT_SHARED.has(fd));
    await until('it has closed what it was given', () => filesOf(beside!).join() === shared.join());
    child.kill('SIGKILL');
    await until('it has ended', () => [undefined, 'Z'].includes(status(beside!, 'State')));
  });
});
