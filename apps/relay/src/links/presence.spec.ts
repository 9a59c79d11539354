import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { connect } from 'node:tls';

import {
  BlockPool,
  encodeIdentity,
  encodePresent,
  FORWARD_HEAD_BYTES,
  writeForwardHead,
} from '@unbounded/relay-protocol';
import { silentLogger } from '@unbounded/telemetry';
import { expect, test } from 'vitest';

import type { Client } from '../client.ts';
import { Directory, type Entry, seededHash } from '../directory.ts';
import { Memory, ReadSlab } from '../memory.ts';
import { Round } from '../round.ts';
import { newTallies } from '../tallies.ts';
import { type HostAndPort, Links, newRelayId } from './links.ts';
import { PresenceUpdates } from './presence-updates.ts';

const secret = randomBytes(32);
/** Less than the presence of all keys takes. */
const QUEUE_BYTES = 128 * 1024;
const KEYS = 20_000;

const keyOf = (index: number): DataView => {
  const view = new DataView(new ArrayBuffer(32));
  view.setUint32(0, index);
  return view;
};
const clientOf = (isProven: boolean): Client => ({ isProven }) as Client;

/** A relay's directory and links, without its clients. */
const startReplica = async (peers: readonly HostAndPort[], host = '127.0.0.1') => {
  const memory = new Memory(64 * 1024 * 1024);
  const slab = new ReadSlab();
  const [round, tallies] = [new Round(slab, memory), newTallies()];
  const announce = (entry: Entry): void => links.announce(entry);
  const directory = new Directory('prefer', seededHash(7), { registered: announce, left: announce });
  const outboxes = {
    ...{ memory, tallies, queueBytes: QUEUE_BYTES, headBytes: FORWARD_HEAD_BYTES, queueAge: () => {} },
  };
  const id = newRelayId();
  const context = { id, slab, partials: new BlockPool(), round, directory, tallies, outboxes };
  const options = { listen: { host, port: 0 }, peers, secret: () => secret, everyMs: 20 };
  const links = new Links(context, memory, { ...options, logger: silentLogger });
  await links.start();
  return { id, directory, links, tallies, [Symbol.dispose]: () => links.stop() };
};

type TestReplica = Awaited<ReturnType<typeof startReplica>>;

const claim = ({ directory }: TestReplica, index: number, client: Client): void =>
  void directory.claim(directory.findOrAdd(keyOf(index), 0), client, client.isProven);
const release = ({ directory }: TestReplica, index: number, client: Client): void =>
  directory.release(directory.find(keyOf(index), 0)!, client);

/** Of each key how the replica knows it from the other one. */
const known = ({ directory }: TestReplica): (boolean | undefined)[] =>
  Array.from({ length: KEYS }, (_, index) => {
    const [presence] = directory.find(keyOf(index), 0)?.replicas?.values() ?? [];
    return presence?.proven;
  });

const until = async (what: string, isSo: () => boolean): Promise<void> => {
  const end = performance.now() + 10_000;
  while (!isSo()) {
    if (performance.now() > end) expect.fail(`not within 10 s: ${what}`);
    await delay(5);
  }
};

/** Packets for the other replica, more than wait for it at most. */
const fillLink = ({ directory }: TestReplica, index: number): void => {
  const frame = Buffer.alloc(FORWARD_HEAD_BYTES + 1400);
  writeForwardHead(frame, 0, 1400);
  const { outbox } = directory.find(keyOf(index), 0)!.replica!;
  for (let bytes = 0; bytes < 8 * QUEUE_BYTES; bytes += frame.length)
    outbox!.send(frame, 0, frame.length, performance.now());
};

test('presence arrives whole and in order, however many keys there are and however busy the link is', async () => {
  const places: HostAndPort[] = [];
  using here = await startReplica(places);
  using there = await startReplica(places);
  const client = clientOf(false);
  for (let index = 0; index < KEYS; index++) claim(here, index, client);
  claim(there, KEYS, client);
  places.push(...[here, there].map(({ links }) => ({ host: '127.0.0.1', port: links.port })));
  const expected: (boolean | undefined)[] = Array.from({ length: KEYS }, () => false);
  await until('all keys are known', () => known(there).every((proven) => proven === false));
  await until('the way back is known', () => here.directory.find(keyOf(KEYS), 0)?.replica !== undefined);

  fillLink(here, KEYS);
  for (let index = 0; index < KEYS; index += 2) {
    release(here, index, client);
    expected[index] = undefined;
  }
  await delay(0);
  for (let index = 0; index < KEYS; index += 3) {
    // Some left before, some do now, and come back at once.
    if (expected[index] === false) release(here, index, client);
    claim(here, index, clientOf(index % 2 === 0));
    expected[index] = index % 2 === 0;
  }
  await until('all changes are known', () => known(there).every((proven, index) => proven === expected[index]));
  expect(here.tallies.dropped.slow).toBeGreaterThan(0); // of the packets
});

test('a replica that dials anew while its old link has not ended is reached once it is linked', async () => {
  const places: HostAndPort[] = [];
  using here = await startReplica(places);
  const address = { host: '127.0.0.1', port: here.links.port };
  const knownPlaces: HostAndPort[] = [address];
  using there = await startReplica(knownPlaces);
  claim(there, 0, clientOf(true));
  await until('its key is known', () => known(here)[0] === true);
  knownPlaces.length = 0; // it dials no more by itself
  const identity = { psk: secret, identity: 'unbounded-relay' };
  const versions = { minVersion: 'TLSv1.2', maxVersion: 'TLSv1.2', ciphers: 'ECDHE-PSK-CHACHA20-POLY1305' } as const;
  const anew = connect({ ...address, ...versions, pskCallback: () => identity, checkServerIdentity: () => undefined });
  await once(anew, 'secureConnect');
  const key = new Uint8Array(keyOf(1).buffer);
  anew.write(Buffer.concat([encodeIdentity(there.id), encodePresent([{ key, proven: true }])]));
  await until('the next link’s key is known', () => known(here)[1] === true);
  places.push({ host: '127.0.0.1', port: there.links.port });
  await until('it is linked', () => here.links.reachable === 1);
  expect(here.directory.find(keyOf(1), 0)?.replica?.isReachable).toBe(true);
  anew.destroy();
});

test('replicas that have several addresses each, dialled at once, keep the link that came up first', async () => {
  const places: HostAndPort[] = [];
  using here = await startReplica(places, '0.0.0.0');
  using there = await startReplica(places, '0.0.0.0');
  claim(there, 0, clientOf(true));
  for (const host of ['127.0.0.1', '127.0.0.2', '127.0.0.3'])
    places.push(...[here, there].map(({ links }) => ({ host, port: links.port })));
  await until('they are linked', () => here.links.reachable === 1 && there.links.reachable === 1);
  await until('its key is known', () => known(here)[0] === true);
  const outboxNow = () => here.directory.find(keyOf(0), 0)?.replica?.outbox;
  const outbox = outboxNow();
  expect(outbox).toBeDefined();
  for (let look = 0; look < 20; look++) {
    await delay(10);
    // The same link, and presence with it.
    expect(outboxNow() === outbox).toBe(true);
    expect(there.links.reachable).toBe(1);
  }
});

test('a key that left and came back before its presence was sent is present', () => {
  const updates = new PresenceUpdates();
  const directory = new Directory('prefer', seededHash(7), {
    registered: (entry) => updates.add(entry),
    left: (entry) => updates.add(entry),
  });
  const client = clientOf(true);
  const first = directory.findOrAdd(keyOf(1), 0);
  directory.claim(first, client, true);
  directory.release(first, client);
  const second = directory.findOrAdd(keyOf(1), 0);
  expect(second).not.toBe(first);
  directory.claim(second, client, true);
  updates.add(first); // as the moment's other changes are announced once a link is up
  updates.add(second);
  const key = new Uint8Array(keyOf(1).buffer);
  expect(updates.next()).toEqual(Buffer.from(encodePresent([{ key, proven: true }])));
  expect(updates.next()).toBeUndefined();
});
