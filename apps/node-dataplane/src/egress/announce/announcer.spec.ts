import type { PacketSocket } from '@unbounded/netlink';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createAnnouncer } from './announcer.ts';
import { decodeArp } from './arp.codec.ts';

/** When it speaks. What that does on a LAN: announce.kernel.spec.ts. */

const LINK = { index: 7, mac: '02:00:00:00:00:07' };
const [FIRST, SECOND] = ['192.0.2.1', '2001:db8::1'];

let sent: { readonly atMs: number; readonly link: number; readonly frame: Uint8Array }[];
let isDown: boolean;
let openSockets: number;
let begin: number;
beforeEach(() => {
  vi.useFakeTimers();
  [sent, isDown, openSockets, begin] = [[], false, 0, performance.now()];
});
afterEach(() => void vi.useRealTimers());

const open = ({ link }: { readonly link: number }): PacketSocket => {
  openSockets++;
  const close = (): void => void openSockets--;
  return {
    send: (frame) => {
      if (isDown) throw new Error('down');
      sent.push({ atMs: performance.now() - begin, link, frame });
    },
    onFrame: () => {},
    close,
    [Symbol.dispose]: close,
  };
};
const problems: string[] = [];
const announcer = () =>
  createAnnouncer({ open, onProblem: (address, error) => problems.push(`${address}: ${(error as Error).message}`) });
const times = (): number[] => [...new Set(sent.map(({ atMs }) => atMs))];

test('three times at once, then after 5 and 30 seconds', () => {
  announcer().announce(SECOND, LINK);
  expect(times()).toEqual([0]);
  vi.advanceTimersByTime(600_000);
  expect(sent.map(({ atMs }) => atMs)).toEqual([0, 150, 300, 5_000, 30_000]);
  expect(sent.every(({ link }) => link === LINK.index)).toBe(true);
  expect(openSockets).toBe(0);
});

test('an address of IPv4 in two frames, each time', () => {
  announcer().announce(FIRST, LINK);
  vi.advanceTimersByTime(200);
  expect(sent.map(({ frame }) => decodeArp(frame)?.operation)).toEqual([1, 2, 1, 2]);
});

test('announced again, it begins anew on the link of the last time', () => {
  const one = announcer();
  one.announce(FIRST, LINK);
  vi.advanceTimersByTime(1_000);
  one.announce(FIRST, { ...LINK, index: 8 });
  vi.advanceTimersByTime(600_000);
  expect(times()).toEqual([0, 150, 300, 1_000, 1_150, 1_300, 6_000, 31_000]);
  expect(sent.filter(({ atMs }) => atMs >= 1_000).every(({ link }) => link === 8)).toBe(true);
});

test('cancelled, it is silent, however the address is written, and others are not', () => {
  const one = announcer();
  one.announce(SECOND, LINK);
  one.announce(FIRST, LINK);
  one.cancel('2001:DB8:0::1');
  vi.advanceTimersByTime(600_000);
  expect(sent.filter(({ frame }) => decodeArp(frame) === undefined).map(({ atMs }) => atMs)).toEqual([0]);
  expect(times()).toEqual([0, 150, 300, 5_000, 30_000]);
});

test('what may not be announced at the moment is not, and others are', () => {
  const lapsed = new Set([SECOND]);
  const one = createAnnouncer({ open, onProblem: () => {}, mayAnnounce: (address) => !lapsed.has(address) });
  const isSecond = ({ frame }: { readonly frame: Uint8Array }): boolean => decodeArp(frame) === undefined;
  one.announce(SECOND, LINK);
  one.announce(FIRST, LINK);
  expect(sent.filter(isSecond)).toEqual([]);
  lapsed.clear();
  vi.advanceTimersByTime(1_000);
  lapsed.add(SECOND);
  vi.advanceTimersByTime(10_000);
  lapsed.clear();
  vi.advanceTimersByTime(600_000);
  expect(sent.filter(isSecond).map(({ atMs }) => atMs)).toEqual([150, 300, 30_000]);
  expect(times()).toEqual([0, 150, 300, 5_000, 30_000]);
});

test('closed, it is silent for good', () => {
  const one = announcer();
  one.announce(FIRST, LINK);
  one.close();
  one.announce(SECOND, LINK);
  vi.advanceTimersByTime(600_000);
  expect(times()).toEqual([0]);
});

test('what cannot be sent is told, and the later times are tried', () => {
  isDown = true;
  announcer().announce(SECOND, LINK);
  vi.advanceTimersByTime(400);
  expect(problems).toEqual([`${SECOND}: down`, `${SECOND}: down`, `${SECOND}: down`]);
  isDown = false;
  vi.advanceTimersByTime(600_000);
  expect(times()).toEqual([5_000, 30_000]);
  expect(openSockets).toBe(0);
});

test('what is no address is refused at once', () => {
  expect(() => announcer().announce('192.0.2', LINK)).toThrow('192.0.2');
  expect(() => announcer().announce(FIRST, { index: 1, mac: 'x' })).toThrow('"x" is not a MAC address');
  vi.advanceTimersByTime(600_000);
  expect(sent).toEqual([]);
});
