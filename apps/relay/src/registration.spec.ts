import { randomBytes } from 'node:crypto';
import { mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join as pathJoin } from 'node:path';

import { encodeData, encodeExtension, encodeRegister, HEALTH, PEER_GONE } from '@unbounded/relay-protocol';
import { silentLogger } from '@unbounded/telemetry';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import { followAllowedKeys } from './allowed-keys.ts';

import { dial, join, keyOf, keyPairOf, newKeys, privateKeyOf, prove } from '@unbounded/relay-testing/peer';
import { startRelay } from './test/test-relay.ts';

const payload = (text: string): Buffer => Buffer.from(`\u0004${text}`);

test('a client that proves its key hears that the relay has proven its own', async () => {
  const staticKey = keyPairOf(privateKeyOf(Buffer.alloc(32, 7)));
  await using relay = await startRelay({ staticKey });
  using peer = await dial(relay.port);
  const { ready } = await prove(peer, newKeys());
  expect(ready).toMatchObject({ kind: 'ready', isOurs: true, keepaliveMs: 25_000, idleTimeoutMs: 90_000 });
  expect(relay.state).toMatchObject({ registered: 1, tallies: { handshakes: { proven: 1 } } });
});

test('the dialogue may come byte by byte', async () => {
  await using relay = await startRelay();
  using peer = await dial(relay.port);
  const write = peer.socket.write.bind(peer.socket);
  peer.send = (...frames) => {
    for (const byte of Buffer.concat(frames)) write(Buffer.of(byte));
    return peer;
  };
  peer.socket.setNoDelay(true);
  const { ready } = await prove(peer, newKeys());
  expect(ready).toMatchObject({ kind: 'ready', isOurs: true });
  peer.send(encodeExtension({ kind: 'ping', data: Buffer.from('87654321') }));
  expect(await peer.next()).toMatchObject({ kind: 'pong', data: Buffer.from('87654321') });
});

test('who has not proven the key cannot displace who has', async () => {
  await using relay = await startRelay({ registerDeadlineMs: 100 });
  const keys = newKeys();
  using victim = await dial(relay.port);
  await prove(victim, keys);
  using hijacker = await dial(relay.port);
  hijacker.send(encodeRegister(keys.publicKey), encodeData(keyOf('friend'), payload('as the victim')));
  using friend = await join(relay.port, keyOf('friend'));
  friend.send(encodeData(keys.publicKey, payload('for the victim')));
  expect(await victim.next()).toMatchObject({ kind: 'data', payload: payload('for the victim') });
  expect(await hijacker.next()).toMatchObject({ kind: 'error', text: expect.stringContaining('proven this key') });
  await hijacker.untilClosed();
  expect(victim.closed).toBe(false);
  expect(friend.frames).toEqual([]);
  expect(relay.state.tallies.dropped.unregistered).toBe(1);
});

test('who proves the key displaces who has not, and who has: its own next connection', async () => {
  await using relay = await startRelay();
  const keys = newKeys();
  using squatter = await join(relay.port, keys.publicKey);
  using first = await dial(relay.port);
  await prove(first, keys);
  await squatter.untilClosed();
  using second = await dial(relay.port);
  await prove(second, keys);
  expect(await first.next()).toMatchObject({ kind: 'health', code: HEALTH.duplicateKey });
  await first.untilClosed();
  using friend = await join(relay.port, keyOf('friend'));
  friend.send(encodeData(keys.publicKey, payload('x')));
  expect(await second.next()).toMatchObject({ kind: 'data', key: keyOf('friend') });
  expect(relay.state.registered).toBe(2);
});

test('a proof is worth its key also when who held that has left in the meantime', async () => {
  await using relay = await startRelay();
  const keys = newKeys();
  using first = await dial(relay.port);
  await prove(first, keys);
  using second = await dial(relay.port);
  const registered = second.send(encodeRegister(keys.publicKey));
  using friend = await join(relay.port, keyOf('friend'));
  first.socket.destroy();
  await friend.until('the first has left', () => relay.state.registered === 1);
  const { ready } = await prove(registered, keys, keys.publicKey);
  expect(ready).toMatchObject({ kind: 'ready' });
  friend.send(encodeData(keys.publicKey, payload('x')));
  expect(await second.next()).toMatchObject({ kind: 'data', payload: payload('x') });
});

test('a recorded proof is worth nothing on another connection', async () => {
  await using relay = await startRelay();
  const keys = newKeys();
  using victim = await dial(relay.port);
  const { hello, proof } = await prove(victim, keys);
  using replayer = await dial(relay.port);
  replayer.send(encodeRegister(keys.publicKey), hello, proof);
  expect(await replayer.next()).toMatchObject({ kind: 'challenge' });
  expect(await replayer.next()).toMatchObject({ kind: 'error', text: 'the proof does not match the key' });
  await replayer.untilClosed();
  expect(victim.closed).toBe(false);
  expect(relay.state.tallies.handshakes).toMatchObject({ proven: 1, refused: 1 });
});

test('a proof with another key is refused', async () => {
  await using relay = await startRelay();
  using peer = await dial(relay.port);
  const { ready } = await prove(peer, newKeys(), newKeys().publicKey);
  expect(ready).toMatchObject({ kind: 'error' });
});

test('a proof before any challenge, a second hello and a second proof are ignored', async () => {
  await using relay = await startRelay();
  using peer = await dial(relay.port);
  const { proof, hello } = await prove(peer, newKeys());
  peer.send(hello, proof, encodeExtension({ kind: 'ping', data: Buffer.from('12345678') }));
  expect(await peer.next()).toMatchObject({ kind: 'pong', data: Buffer.from('12345678') });
  using early = await join(relay.port, keyOf('early'));
  early.send(proof, encodeData(keyOf('early'), payload('self')));
  expect(await early.next()).toMatchObject({ kind: 'data' });
});

test.each([
  ['zero', Buffer.alloc(32)],
  ['one', Buffer.concat([Buffer.from([1]), Buffer.alloc(31)])],
  ['of order 8', Buffer.from('e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800', 'hex')],
])('a key of low order cannot be registered: %s', async (_name, key) => {
  await using relay = await startRelay({ auth: 'off' });
  using peer = await dial(relay.port);
  peer.send(encodeRegister(key));
  expect(await peer.next()).toMatchObject({ kind: 'error', text: expect.stringContaining('low order') });
  await peer.untilClosed();
  expect(relay.state).toMatchObject({ registered: 0, tallies: { handshakes: { lowOrder: 1 } } });
});

test('--auth require: no key without a proof, and an Error that says so', async () => {
  await using relay = await startRelay({ auth: 'require', proofDeadlineMs: 50 });
  using legacy = await dial(relay.port);
  const keys = newKeys();
  using proven = await dial(relay.port);
  await prove(proven, keys);
  legacy.send(encodeRegister(keyOf('legacy')), encodeData(keys.publicKey, payload('x')));
  expect(await legacy.next()).toMatchObject({
    kind: 'error',
    text: expect.stringContaining('authentication required'),
  });
  await legacy.untilClosed();
  expect(proven.frames).toEqual([]);
  expect(relay.state.registered).toBe(1);
});

test('--auth off: the newest has the key, as in the document', async () => {
  await using relay = await startRelay({ auth: 'off' });
  const keys = newKeys();
  using proven = await dial(relay.port);
  await prove(proven, keys);
  using newest = await join(relay.port, keys.publicKey);
  expect(await proven.next()).toMatchObject({ kind: 'health' });
  await proven.untilClosed();
  expect(newest.closed).toBe(false);
});

test('of many connections that race for a key one has it in the end, and it is the one that gets its frames', async () => {
  await using relay = await startRelay();
  const key = keyOf('raced');
  const peers = await Promise.all(Array.from({ length: 30 }, () => dial(relay.port)));
  for (const peer of peers) peer.send(encodeRegister(key));
  using friend = await join(relay.port, keyOf('friend'));
  await friend.until('one is left', () => {
    friend.send(encodeData(keyOf('friend'), payload('tick')));
    return peers.filter(({ closed }) => !closed).length === 1;
  });
  const winner = peers.find(({ closed }) => !closed)!;
  friend.send(encodeData(key, payload('for the winner')));
  expect(await winner.next()).toMatchObject({ payload: payload('for the winner') });
  expect(relay.state.registered).toBe(2);
  winner.socket.destroy();
});

test('who sends to a key that is not here is told, three times and then once a second', async () => {
  await using relay = await startRelay();
  using peer = await dial(relay.port);
  await prove(peer, newKeys());
  const absent = keyOf('absent');
  for (let count = 0; count < 10; count++) peer.send(encodeData(absent, payload('x')));
  peer.send(encodeExtension({ kind: 'ping', data: randomBytes(8) }));
  for (let count = 0; count < 3; count++)
    expect(await peer.next()).toMatchObject({ kind: 'peerGone', key: absent, reason: PEER_GONE.notHere });
  expect(await peer.next()).toMatchObject({ kind: 'pong' });
});

test('a peer that has left is said to have left', async () => {
  await using relay = await startRelay();
  using peer = await dial(relay.port);
  await prove(peer, newKeys());
  using friend = await join(relay.port, keyOf('friend'));
  peer.send(encodeData(keyOf('friend'), payload('x')));
  await friend.next();
  friend.socket.destroy();
  await peer.until('it is gone', () => {
    peer.send(encodeData(keyOf('friend'), payload('y')));
    return relay.state.registered === 1 && peer.frames.length > 0;
  });
  expect(await peer.next()).toMatchObject({ kind: 'peerGone', key: keyOf('friend'), reason: PEER_GONE.left });
});

test('a drain asks clients to leave, cuts those that cannot be asked, and goes on forwarding meanwhile', async () => {
  await using relay = await startRelay();
  using modern = await dial(relay.port);
  const keys = newKeys();
  await prove(modern, keys);
  using legacy = await join(relay.port, keyOf('legacy'));
  const { port } = relay;
  const drained = relay.drain(400);
  expect(await modern.next()).toMatchObject({ kind: 'drain', tryForMs: 400 });
  modern.send(encodeData(keys.publicKey, payload('still here')));
  expect(await modern.next()).toMatchObject({ kind: 'data' });
  await legacy.untilClosed();
  await expect(dial(port)).rejects.toThrow('ECONNREFUSED');
  await drained;
  await modern.untilClosed();
});

describe('with a list of allowed keys', () => {
  let folder = '';
  let file = '';
  beforeEach(() => {
    folder = mkdtempSync(pathJoin(tmpdir(), 'relay-'));
    file = pathJoin(folder, 'keys');
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  /** As Kubernetes replaces mounted files: by a link that leads elsewhere. */
  const write = (...keys: readonly Uint8Array[]): void => {
    const version = mkdtempSync(pathJoin(folder, 'version-'));
    writeFileSync(pathJoin(version, 'keys'), keys.map((key) => `${Buffer.from(key).toString('base64')}\n`).join(''));
    rmSync(`${file}.new`, { force: true });
    symlinkSync(pathJoin(version, 'keys'), `${file}.new`);
    renameSync(`${file}.new`, file);
  };
  const start = () => startRelay({ auth: 'require', allowed: followAllowedKeys(file, silentLogger) });

  test('only keys on it are served, and only with a proof; a key that comes onto it is served soon', async () => {
    const [member, late] = [newKeys(), newKeys()];
    write(member.publicKey);
    await using relay = await start();
    using a = await dial(relay.port);
    expect((await prove(a, member)).ready).toMatchObject({ kind: 'ready', isOurs: true });
    using early = await dial(relay.port);
    early.send(encodeRegister(late.publicKey));
    expect(await early.next()).toMatchObject({ kind: 'error', text: expect.stringContaining('not permitted') });
    await early.untilClosed();
    a.send(encodeData(late.publicKey, payload('x')));
    expect(await a.next()).toMatchObject({ kind: 'peerGone', reason: PEER_GONE.notPermitted });
    write(member.publicKey, late.publicKey);
    await a.until('the list is known', () => relay.state.allowedKeys === 2);
    using b = await dial(relay.port);
    expect((await prove(b, late)).ready).toMatchObject({ kind: 'ready' });
    a.send(encodeData(late.publicKey, payload('y')));
    expect(await b.next()).toMatchObject({ payload: payload('y') });
    using thief = await dial(relay.port);
    expect((await prove(thief, newKeys(), member.publicKey)).ready).toMatchObject({ kind: 'error' });
  });

  test('a key that is taken off it is disconnected, and so is one that is about to prove itself', async () => {
    const [member, leaver] = [newKeys(), newKeys()];
    write(member.publicKey, leaver.publicKey);
    await using relay = await start();
    using a = await dial(relay.port);
    await prove(a, member);
    using b = await dial(relay.port);
    await prove(b, leaver);
    using waiting = await dial(relay.port);
    waiting.send(encodeRegister(leaver.publicKey));
    await a.until('it waits', () => relay.state.pending === 1);
    write(member.publicKey);
    expect(await b.next()).toMatchObject({ kind: 'error', text: expect.stringContaining('not permitted') });
    await b.untilClosed();
    await waiting.untilClosed();
    expect(a.closed).toBe(false);
    expect(relay.state).toMatchObject({ registered: 1, tallies: { closed: { 'not-permitted': 2 } } });
  });

  test('while it is missing nobody is served; once it was read, one that is missing or malformed changes nothing', async () => {
    const member = newKeys();
    await using relay = await start();
    using early = await dial(relay.port);
    early.send(encodeRegister(member.publicKey));
    expect(await early.next()).toMatchObject({ kind: 'error' });
    write(member.publicKey);
    using watcher = await dial(relay.port);
    await watcher.until('it is known', () => relay.state.allowedKeys === 1);
    expect(relay.state.isListStale).toBe(false);
    using a = await dial(relay.port);
    await prove(a, member);
    for (const spoil of [() => writeFileSync(file, 'no key'), () => rmSync(file)]) {
      spoil();
      await watcher.until('it is stale', () => relay.state.isListStale);
      using again = await dial(relay.port);
      expect((await prove(again, member)).ready).toMatchObject({ kind: 'ready' });
      write(member.publicKey);
      await watcher.until('it is well again', () => !relay.state.isListStale);
    }
    expect(relay.state.allowedKeys).toBe(1);
  });
});
