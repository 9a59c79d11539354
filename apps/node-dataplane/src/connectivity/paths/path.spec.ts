import type { PathProbe } from '@unbounded/health';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { PathPeer } from './messages.ts';
import { createPath, type Found, type PathOptions, type Target, type WatchedPath } from './path.ts';

/** Both ends of a link, with a network between them that the test cuts. */

const INTERVAL_MS = 500;
const ADDRESSES = { a: { address: '192.0.2.1', port: 51_820 }, b: { address: '192.0.2.2', port: 51_821 } } as const;
type Name = keyof typeof ADDRESSES;

interface End {
  readonly path: WatchedPath;
  readonly ways: string[];
  readonly outcomes: string[];
}

interface World {
  readonly ends: Readonly<Record<Name, End>>;
  readonly open: Record<'aToB' | 'bToA', boolean>;
  /** Where b's packets seem to come from. */
  mapped: Target;
  /** Whether a hears WireGuard's packets from b directly. */
  isHeard: boolean;
  readonly sent: { readonly from: Name; readonly probe: PathProbe }[];
}

let opened: World[];
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setImmediate', 'performance'] });
  opened = [];
});
afterEach(() => {
  for (const { ends } of opened) for (const { path } of Object.values(ends)) path.stop();
  vi.useRealTimers();
});

const peerPlan = (name: Name, direct?: string): PathPeer => ({
  node: name,
  publicKey: name,
  mode: 'auto',
  intervalMs: INTERVAL_MS,
  detectMultiplier: 3,
  proxy: `127.0.0.1:${name === 'a' ? 1 : 2}`,
  ...(direct === undefined ? {} : { direct }),
});

const NOTHING: Found = { session: undefined, isAdopted: false };

/** @param found what a's WireGuard has @param isHidden b cannot be called */
const makeWorld = ({ found = NOTHING, isHidden = false }: { found?: Found; isHidden?: boolean } = {}): World => {
  const ends = {} as Record<Name, End>;
  const open = (name: Name, peer: PathPeer, options: Pick<PathOptions, 'found' | 'isHeardDirectly'>): void => {
    const [ways, outcomes]: [string[], string[]] = [[], []];
    const path = createPath({
      peer,
      isRelayUp: true,
      nonce: 1n,
      ...options,
      onDoubt: () => undefined,
      onWay: () => ways.push(`${path.way!.path} ${path.way!.endpoint} ${path.way!.reason}`),
      transmit: (probe, to) => deliver(name, probe, to),
    });
    ends[name] = { path, ways, outcomes };
  };
  const world: World = { ends, open: { aToB: true, bToA: true }, mapped: ADDRESSES.b, isHeard: false, sent: [] };
  const deliver = (from: Name, probe: PathProbe, to: Target): void => {
    world.sent.push({ from, probe });
    const isThere = from === 'b' || to.port === world.mapped.port;
    if (!isThere || !world.open[from === 'a' ? 'aToB' : 'bToA']) return;
    const other = ends[from === 'a' ? 'b' : 'a'];
    setTimeout(() => other.outcomes.push(other.path.onProbe(probe, from === 'a' ? ADDRESSES.a : world.mapped)), 10);
  };
  const toB = peerPlan('b', isHidden ? undefined : '192.0.2.2:51821');
  open('a', toB, { found, isHeardDirectly: () => world.isHeard });
  open('b', peerPlan('a', '192.0.2.1:51820'), { found: NOTHING, isHeardDirectly: () => false });
  opened.push(world);
  return world;
};
const intervals = (count: number): void => void vi.advanceTimersByTime(count * INTERVAL_MS);
const pathOf = ({ ends }: World, name: Name): string | undefined => ends[name].path.way?.path;
const both = (world: World): (string | undefined)[] => [pathOf(world, 'a'), pathOf(world, 'b')];

test('both ends move to direct within a round trip of each other, once it is validated', () => {
  const world = makeWorld();
  expect(both(world)).toEqual(['relay', 'relay']);
  intervals(6);
  expect(world.ends.a.ways).toEqual(['direct 192.0.2.2:51821 validated']);
  expect(world.ends.b.ways).toEqual(['direct 192.0.2.1:51820 validated']);
});

describe('a direct way that dies', () => {
  test.each([
    ['in both directions', { aToB: false, bToA: false }],
    ['from a to b', { aToB: false, bToA: true }],
    ['from b to a', { aToB: true, bToA: false }],
  ])('%s is left by both ends within N + 1 intervals', (_name, open) => {
    const world = makeWorld();
    intervals(6);
    Object.assign(world.open, open);
    intervals(4);
    expect(both(world)).toEqual(['relay', 'relay']);
    intervals(100);
    expect(both(world)).toEqual(['relay', 'relay']);
  });

  test('is taken again after the wait, by both', () => {
    const world = makeWorld();
    intervals(6);
    world.open.aToB = false;
    intervals(4);
    world.open.aToB = true;
    intervals(8);
    expect(both(world)).toEqual(['relay', 'relay']);
    intervals(8);
    expect(both(world)).toEqual(['direct', 'direct']);
  });
});

describe('a path whose handshake went directly', () => {
  const found: Found = { session: '192.0.2.2:51821', isAdopted: false };

  test('begins there, and stays until it is proven, whatever the peer sends by', () => {
    const world = makeWorld({ found });
    expect(both(world)).toEqual(['direct', 'relay']);
    intervals(6);
    expect(both(world)).toEqual(['direct', 'direct']);
    expect(world.ends.a.ways).toEqual(['direct 192.0.2.2:51821 validated']);
  });

  test('goes to the relay after N intervals without replies', () => {
    const world = makeWorld({ found });
    world.open.aToB = false;
    intervals(4);
    expect(world.ends.a.ways).toEqual(['relay 127.0.0.1:2 unvalidated']);
  });

  test('is asked there when the peer has no other address', () => {
    const world = makeWorld({ isHidden: true });
    Object.assign(world.open, { bToA: false });
    world.ends.a.path.shookHands('198.51.100.7:2048');
    expect(world.ends.a.ways).toEqual(['direct 198.51.100.7:2048 handshake']);
    intervals(4);
    expect(world.ends.a.ways.slice(1)).toEqual(['relay 127.0.0.1:2 unvalidated']);
  });
});

describe('a peer that cannot be called', () => {
  test('is asked at the address that it calls from, which becomes its endpoint once it answered', () => {
    const world = makeWorld({ isHidden: true });
    world.mapped = { address: '198.51.100.7', port: 2048 };
    intervals(8);
    expect(world.ends.a.ways).toEqual(['relay 127.0.0.1:2 unvalidated', 'direct 198.51.100.7:2048 validated']);
    expect(pathOf(world, 'b')).toBe('direct');
    world.mapped = { address: '198.51.100.7', port: 4096 }; // the NAT has forgotten it, and maps anew
    intervals(2);
    expect(world.ends.a.ways.slice(2)).toEqual(['direct 198.51.100.7:4096 validated']);
  });

  test('is not asked before it calls', () => {
    const world = makeWorld({ isHidden: true });
    world.open.bToA = false;
    intervals(20);
    expect(world.sent.filter(({ from }) => from === 'a')).toEqual([]);
    expect(pathOf(world, 'a')).toBe('relay');
  });
});

describe('a peer whose agent says nothing', () => {
  const silent = (): World => {
    const world = makeWorld({ found: { session: '192.0.2.2:51821', isAdopted: true } });
    world.ends.b.path.stop();
    Object.assign(world.open, { aToB: false, bToA: false });
    return world;
  };

  test('stays direct while WireGuard hears from it directly', () => {
    const world = silent();
    world.isHeard = true;
    intervals(50);
    expect(pathOf(world, 'a')).toBe('direct');
    world.isHeard = false;
    intervals(2);
    expect(pathOf(world, 'a')).toBe('relay');
  });

  test('is left after N intervals when WireGuard does not', () => {
    const world = silent();
    intervals(5);
    expect(world.ends.a.ways).toEqual(['relay 127.0.0.1:2 unanswered']);
  });

  test('is left after a minute, if it once answered', () => {
    const world = makeWorld();
    intervals(6);
    world.isHeard = true;
    world.ends.b.path.stop();
    world.open.aToB = false;
    intervals(100);
    expect(pathOf(world, 'a')).toBe('direct');
    intervals(30);
    expect(pathOf(world, 'a')).toBe('relay');
  });

  test('is not given up in the interval in which it is back, too late for our request', () => {
    const world = silent();
    world.isHeard = true;
    intervals(10);
    const call = (sequence: bigint): void => {
      world.ends.a.path.onProbe({ nonce: 2n, sequence, stance: 'direct' }, ADDRESSES.b);
      intervals(1);
    };
    call(1n);
    expect(pathOf(world, 'a')).toBe('direct');
    call(2n); // it was there when we asked
    expect(pathOf(world, 'a')).toBe('relay');
  });

  test('one that asks and does not hear us is left, whatever WireGuard hears', () => {
    const world = makeWorld();
    intervals(6);
    world.isHeard = true;
    world.open.aToB = false;
    intervals(4);
    expect(pathOf(world, 'a')).toBe('relay');
  });
});

test('copies of old packets, and replies that nothing waits for, change nothing and are not answered', () => {
  const world = makeWorld();
  intervals(6);
  const { sent, ends } = world;
  const request = sent.find(({ from, probe }) => from === 'b' && !probe.answers)!.probe;
  const reply = sent.find(({ from, probe }) => from === 'b' && probe.answers)!.probe;
  const count = sent.length;
  expect(ends.a.path.onProbe(request, ADDRESSES.b)).toBe('replayed');
  expect(ends.a.path.onProbe(reply, ADDRESSES.b)).toBe('unexpected');
  expect(ends.a.path.onProbe({ ...reply, answers: { nonce: 2n, sequence: 1n } }, ADDRESSES.b)).toBe('unexpected');
  expect(sent).toHaveLength(count);
});

test('what the peer said before does not count when it overtakes what it said later', () => {
  const world = makeWorld();
  intervals(6);
  const early = world.sent.find(({ from, probe }) => from === 'b' && probe.stance === 'relay' && !probe.answers)!.probe;
  // A reply to a request that still waits, but written before the peer moved.
  world.open.aToB = false;
  intervals(1);
  const waiting = world.sent.findLast(({ from, probe }) => from === 'a' && !probe.answers)!.probe;
  const late = { ...early, answers: { nonce: waiting.nonce, sequence: waiting.sequence } };
  expect(world.ends.a.path.onProbe(late, ADDRESSES.b)).toBe('counted');
  expect(pathOf(world, 'a')).toBe('direct');
});

test('a peer whose clock went back over a reboot is heard again after half a minute', () => {
  const world = makeWorld();
  intervals(6);
  Object.assign(world.open, { aToB: false, bToA: false });
  const old: PathProbe = { nonce: 0n, sequence: 1n, stance: 'relay' };
  expect(world.ends.a.path.onProbe(old, ADDRESSES.b)).toBe('replayed');
  intervals(61);
  expect(world.ends.a.path.onProbe(old, ADDRESSES.b)).toBe('counted');
});

test('the mesh says always: nothing is asked, the peer is answered and told, and goes to the relay too', () => {
  const world = makeWorld();
  intervals(6);
  world.ends.a.path.update({ ...peerPlan('b', '192.0.2.2:51821'), mode: 'always' }, true);
  const count = world.sent.length;
  intervals(20);
  expect(both(world)).toEqual(['relay', 'relay']);
  expect(world.sent.slice(count).filter(({ from, probe }) => from === 'a' && !probe.answers)).toEqual([]);
});
