import { execFileSync, spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { macText } from '@unbounded/ip';
import { createNetns, createRouteSocket, type Netns, openPacketSocket, type PacketSocket } from '@unbounded/netlink';
import { until } from '@unbounded/testing';
import { ethernet, gratuitousArp, neighborAdvertisement } from '@unbounded/testing/packets';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { AnnouncedLink } from './announced-link.ts';
import { type ProbeOptions, probeAddress } from './address-probe.ts';
import { type Announcer, createAnnouncer } from './announcer.ts';
import { arpProbe, decodeArp } from './arp.codec.ts';
import { decodeNeighborMessage, neighborProbe } from './ndp.codec.ts';

/** Two nodes on a LAN, whose switch is a neighbor of both. */

type Place = 'owner' | 'other' | 'lan';
const LINKS: Readonly<Record<Place, string>> = { owner: 'eth0', other: 'eth0', lan: 'lan' };
const MACS: Readonly<Record<Place, string>> = {
  owner: '02:00:00:00:00:01',
  other: '02:00:00:00:00:02',
  lan: '02:00:00:00:00:99',
};
const OWN = { owner: 1, other: 2, lan: 99 } as const;
/** Of nobody at first. */
const ADDRESSES = ['192.0.2.200', '2001:db8::200'] as const;
const FORMER = '02:00:00:00:00:77';

const ns = {} as Record<Place, Netns>;
const links = {} as Record<Place, AnnouncedLink>;
const run = (place: Place, command: string): string =>
  execFileSync('nsenter', [`--net=${ns[place].path}`, 'sh', '-ec', command], { encoding: 'utf8' });

beforeAll(async () => {
  for (const place of ['lan', 'owner', 'other'] as const) ns[place] = createNetns();
  run('lan', `ip link add lan address ${MACS.lan} up type bridge`);
  for (const place of ['owner', 'other'] as const) {
    run('lan', `ip link add to-${place} type veth peer name eth0 address ${MACS[place]} netns ${ns[place].path}`);
    run('lan', `ip link set to-${place} master lan up`);
    run(place, 'ip link set eth0 up');
  }
  for (const place of ['lan', 'owner', 'other'] as const) {
    const [link, host] = [LINKS[place], OWN[place]];
    run(place, `ip addr add 192.0.2.${host}/24 dev ${link}; ip addr add 2001:db8::${host}/64 dev ${link} nodad`);
    await using net = createRouteSocket({ netnsFd: ns[place].fd });
    links[place] = { index: (await net.links.get(link))!.index, mac: MACS[place] };
    await until(`${place} is up`, async () => (await net.links.get(link))?.operState === 'up');
  }
  for (const address of ['192.0.2.2', '2001:db8::2']) run('owner', `ping -qc1 -w5 ${address}`);
});
afterAll(() => {
  for (const one of Object.values(ns)) one.close();
});

const opensIn = (place: Place) => (options: Parameters<typeof openPacketSocket>[0]) =>
  openPacketSocket({ ...options, netnsFd: ns[place].fd });

const announcers: Announcer[] = [];
const announcerOf = (place: Place, offsetsMs: readonly number[]): Announcer => {
  const fail = (address: string, error: unknown): never => {
    throw new Error(`${address} was not announced`, { cause: error });
  };
  const one = createAnnouncer({ open: opensIn(place), offsetsMs, onProblem: fail });
  announcers.push(one);
  return one;
};
afterEach(() => {
  for (const one of announcers.splice(0)) one.close();
});

const etherTypeOf = (address: string): number => (address.includes(':') ? 0x86dd : 0x0806);
const targetOf = (frame: Uint8Array): string | undefined =>
  decodeArp(frame)?.targetAddress ?? decodeNeighborMessage(frame)?.target;

/** When frames about this address come to the other node. */
const capture = (address: string) => {
  const [begin, frames] = [performance.now(), [] as { readonly atMs: number; readonly frame: Uint8Array }[]];
  const socket = opensIn('other')({ link: links.other.index, etherType: etherTypeOf(address) });
  socket.onFrame((frame) => {
    if (targetOf(frame) === address) frames.push({ atMs: performance.now() - begin, frame: Uint8Array.from(frame) });
  });
  return { frames, [Symbol.dispose]: () => socket.close() };
};

const QUICK = { firstWithinMs: 10, betweenMs: 40, listenMs: 60 };
const probe = (place: Place, address: string, more: Partial<ProbeOptions> = {}) =>
  probeAddress({ address, link: links[place], open: opensIn(place), timings: QUICK, ...more });
/** The other node has the address while this runs. */
const held = async <T>(address: string, act: () => Promise<T>): Promise<T> => {
  run('other', `ip addr add ${address} dev eth0 ${address.includes(':') ? 'nodad' : ''}`);
  try {
    return await act();
  } finally {
    run('other', `ip addr del ${address}/${address.includes(':') ? 128 : 32} dev eth0`);
  }
};

describe.each(ADDRESSES)('an announcement of %s', (address) => {
  test('takes it from its former owner in the tables of neighbors', () => {
    run('lan', `ip neigh replace ${address} dev lan lladdr ${FORMER} nud stale`);
    announcerOf('owner', [0]).announce(address, links.owner);
    const entry = run('lan', `ip neigh show ${address} dev lan`);
    expect(entry).toContain(`lladdr ${MACS.owner}`);
  });

  test('is sent three times, and twice more later', async () => {
    using seen = capture(address);
    const offsetsMs = [0, 30, 60, 200, 400];
    announcerOf('owner', offsetsMs).announce(address, links.owner);
    const each = address.includes(':') ? 1 : 2;
    await until('all were sent', () => seen.frames.length === 5 * each);
    await sleep(100);
    expect(seen.frames.length).toBe(5 * each);
    for (const [index, offsetMs] of offsetsMs.entries())
      expect(seen.frames[index * each]!.atMs).toBeGreaterThanOrEqual(offsetMs - 1);
  });

  test('ends when it is cancelled', async () => {
    using seen = capture(address);
    const announcer = announcerOf('owner', [0, 30, 60, 90, 120]);
    announcer.announce(address, links.owner);
    await until('some were sent', () => seen.frames.length > 0);
    announcer.cancel(address);
    await sleep(20); // what was sent before has come by then
    const before = seen.frames.length;
    await sleep(200);
    expect(seen.frames.length).toBe(before);
  });
});

/** What claims the address, if it were a frame of this LAN, whole and unchanged. */
const garbageAbout = (address: string): Uint8Array[] => {
  const isV4 = !address.includes(':');
  const claim = (isV4 ? gratuitousArp : neighborAdvertisement)({ mac: FORMER, ip: address });
  const changed = (at: number, value: number): Uint8Array => claim.map((byte, place) => (place === at ? value : byte));
  return [
    ...[14, 15, 20, 30, claim.length - 1].map((length) => claim.subarray(0, length)),
    Uint8Array.from([...claim.subarray(0, 12), 0x81, 0, 0, 5, ...claim.subarray(12)]),
    Uint8Array.from([...claim.subarray(0, 12), 0x88, 0xa8, 0, 5, 0x81, 0, 0, 6, ...claim.subarray(12)]),
    ...(isV4
      ? [changed(15, 6), changed(18, 8), changed(19, 16)] // hardware type, lengths of addresses
      : [changed(18, 1), changed(19, 200), changed(21, 64), changed(56, 0xff), changed(79, 9)]), // length, hop limit, checksum, option
    ethernet({ to: MACS.owner, from: FORMER, type: etherTypeOf(address) }, new Uint8Array(1500).fill(0xff)),
  ];
};

describe.each(ADDRESSES)('a probe of %s', (address) => {
  test('finds it free in about a second', async () => {
    const begin = performance.now();
    expect(await probeAddress({ address, link: links.owner, open: opensIn('owner') })).toEqual({ isFree: true });
    expect(performance.now() - begin).toBeGreaterThan(800);
  });

  test('names who has it', async () => {
    const begin = performance.now();
    const outcome = await held(address, () => probe('owner', address, { timings: { ...QUICK, listenMs: 50_000 } }));
    expect(outcome).toEqual({ isFree: false, mac: MACS.other });
    expect(performance.now() - begin).toBeLessThan(20_000);
  });

  test('heeds the announcement of one that does not answer', async () => {
    const outcome = probe('owner', address);
    announcerOf('other', [0, 20, 40]).announce(address, links.other);
    expect(await outcome).toEqual({ isFree: false, mac: MACS.other });
  });

  test('claims nothing: neighbors keep what they know', async () => {
    run('lan', `ip neigh replace ${address} dev lan lladdr ${FORMER} nud stale`);
    await probe('owner', address);
    expect(run('lan', `ip neigh show ${address} dev lan`)).toContain(`lladdr ${FORMER}`);
  });

  test('heeds the probe of another one', async () => {
    using from: PacketSocket = opensIn('other')({ link: links.other.index });
    const outcome = probe('owner', address);
    from.send((address.includes(':') ? neighborProbe : arpProbe)(address, links.other.mac));
    expect(await outcome).toEqual({ isFree: false, mac: MACS.other });
  });

  test('takes nobody who looks for the address for one who has it', async () => {
    run('lan', `ip neigh flush to ${address}`);
    using seen = capture(address);
    const outcome = probe('owner', address, { timings: { ...QUICK, listenMs: 1000 } });
    const ping = spawn('nsenter', [`--net=${ns.lan.path}`, 'ping', '-qc1', '-w5', address], { stdio: 'ignore' });
    const isOfLan = ({ frame }: { readonly frame: Uint8Array }): boolean => macText(frame.subarray(6, 12)) === MACS.lan;
    await until('somebody looks for it', () => seen.frames.some(isOfLan));
    ping.kill();
    expect(await outcome).toEqual({ isFree: true });
  });

  test.each([0, 20, 60, 130, 160])('of a node %i ms after another one does not give it to both', async (lateMs) => {
    const take = async (place: 'owner' | 'other'): Promise<boolean> => {
      const { isFree } = await probe(place, address);
      if (isFree) announcerOf(place, [0, 20, 40]).announce(address, links[place]);
      return isFree;
    };
    const first = take('owner');
    await sleep(lateMs);
    const taken = await Promise.all([first, take('other')]);
    expect(taken).not.toEqual([true, true]);
  });

  test('takes no garbage for an answer', async () => {
    using from: PacketSocket = opensIn('other')({ link: links.other.index });
    const outcome = probe('owner', address);
    for (const frame of garbageAbout(address)) from.send(frame);
    expect(await outcome).toEqual({ isFree: true });
  });

  test('reads what came while the thread was busy before it decides', async () => {
    using from: PacketSocket = opensIn('other')({ link: links.other.index });
    const claim = (address.includes(':') ? neighborAdvertisement : gratuitousArp)({ mac: MACS.other, ip: address });
    const timings = { firstWithinMs: 0, betweenMs: 5, listenMs: 50 };
    let sent = 0;
    const open: ProbeOptions['open'] = (options) => {
      const socket = opensIn('owner')(options);
      const send = (frame: Uint8Array): void => {
        socket.send(frame);
        // Node runs timers that are due together one after another, and reads no socket between them: this one is just before the last.
        if (++sent === 3)
          setTimeout(() => {
            from.send(claim);
            for (const end = performance.now() + 20; performance.now() < end;);
          }, timings.listenMs);
      };
      return { ...socket, send };
    };
    expect(await probe('owner', address, { open, timings })).toEqual({ isFree: false, mac: MACS.other });
  });

  test('ends when it is aborted, and listens no more', async () => {
    const groups = (): string => run('owner', 'ip maddress show dev eth0');
    const before = groups();
    const [abort, reason] = [new AbortController(), new Error('not wanted any more')];
    const outcome = probe('owner', address, { signal: abort.signal, timings: { ...QUICK, listenMs: 50_000 } });
    expect(groups().includes('33:33:ff:00:02:00')).toBe(address.includes(':'));
    await sleep(100);
    abort.abort(reason);
    await expect(outcome).rejects.toBe(reason);
    expect(groups()).toBe(before);
    await expect(probe('owner', address, { signal: abort.signal })).rejects.toBe(reason);
  });

  test('knows nothing where nothing can be sent', async () => {
    run('lan', 'ip link set to-owner down');
    try {
      // The kernel notices within a second.
      await until('the probe fails', () =>
        probe('owner', address).then(
          () => false,
          ({ code }) => code === 'ENETDOWN',
        ),
      );
      await expect(probe('owner', address, { link: { ...links.owner, index: 9999 } })).rejects.toMatchObject({
        code: 'ENODEV',
      });
    } finally {
      run('lan', 'ip link set to-owner up');
    }
    await until('the LAN is whole', () => {
      run('owner', 'ping -qc1 -w1 192.0.2.2');
      return true;
    });
  });
});

test('a probe hears another one through a switch that forwards multicast to members alone', async () => {
  const address = ADDRESSES[1];
  // In hundredths of a second: it forwards to all until its first query could have been answered.
  run(
    'lan',
    'ip link set lan type bridge mcast_query_response_interval 10; ip link set lan type bridge mcast_querier 1',
  );
  const heardWithout = async (): Promise<boolean> => {
    using deaf = opensIn('owner')({ link: links.owner.index, etherType: 0x86dd });
    using from: PacketSocket = opensIn('other')({ link: links.other.index });
    let heard = false;
    deaf.onFrame((frame) => {
      heard ||= targetOf(frame) === address;
    });
    from.send(neighborProbe(address, links.other.mac));
    await sleep(30);
    return heard;
  };
  await until('the switch forwards to members alone', async () => !(await heardWithout()));
  using from: PacketSocket = opensIn('other')({ link: links.other.index });
  const outcome = probe('owner', address, { timings: { ...QUICK, listenMs: 500 } });
  await sleep(100);
  from.send(neighborProbe(address, links.other.mac));
  expect(await outcome).toEqual({ isFree: false, mac: MACS.other });
  run('lan', 'ip link set lan type bridge mcast_querier 0');
});
