import { randomBytes } from 'node:crypto';
import { connect } from 'node:net';

import {
  encodeData,
  encodeExtension,
  encodeFrame,
  encodeKeepalive,
  encodeRegister,
  FRAME,
} from '@unbounded/relay-protocol';
import { expect, test } from 'vitest';

import { dial, join, keyOf, newKeys, prove, TestPeer } from '@unbounded/relay-testing/peer';
import { startRelay } from './test/test-relay.ts';

const hex = (text: string): Buffer => Buffer.from(text, 'hex');

test.each([
  ['Data before Register', Buffer.from(encodeData(keyOf('b'), Buffer.from('x')))],
  ['Keepalive before Register', Buffer.from(encodeKeepalive())],
  ['length 0', hex('0000000001')],
  ['length 65,537', hex('0001000102')],
  ['length 4 GiB, of which only the four bytes are there', hex('ffffffff')],
  ['a Register that announces a byte too many', hex('0000002201')],
  ['a frame of another type with the length of a Register', hex('0000002102')],
  ['an HTTP request', Buffer.from('GET / HTTP/1.1\r\nHost: relay\r\n\r\n')],
  ['a TLS ClientHello on a port without a certificate', hex('1603010200010001fc0303')],
])('%s ends the connection at once, without an answer', async (_name, bytes) => {
  await using relay = await startRelay();
  using peer = await dial(relay.port);
  peer.send(bytes);
  await peer.untilClosed(1000);
  expect(peer.bytes).toBe(0);
});

test.each([
  ['length 0', hex('00000000')],
  ['length 65,537', hex('00010001')],
  ['length 4 GiB', hex('ffffffff')],
])('%s after Register ends the connection, and frames before it have been forwarded', async (_name, bytes) => {
  await using relay = await startRelay();
  using receiver = await join(relay.port, keyOf('receiver'));
  using peer = await dial(relay.port);
  peer.send(encodeRegister(keyOf('sender')), encodeData(keyOf('receiver'), Buffer.from('before')), bytes);
  expect(await receiver.next()).toMatchObject({ payload: Buffer.from('before') });
  await peer.untilClosed(1000);
  expect(relay.state.tallies.closed['bad-length']).toBe(1);
});

test('a connection that sends a byte now and then is ended by the deadline for Register', async () => {
  await using relay = await startRelay({ registerDeadlineMs: 300 });
  using peer = await dial(relay.port);
  const register = Buffer.from(encodeRegister(keyOf('slow')));
  let sent = 0;
  const timer = setInterval(() => peer.socket.write(register.subarray(sent, ++sent)), 50);
  await peer.untilClosed(3000).finally(() => clearInterval(timer));
  expect(sent).toBeLessThan(37);
  expect(relay.state).toMatchObject({ connections: 0, tallies: { closed: { 'not-registered': 1 } } });
});

test('a connection that sends nothing at all is ended by the same deadline', async () => {
  await using relay = await startRelay({ registerDeadlineMs: 100 });
  using peer = await dial(relay.port);
  await peer.untilClosed(3000);
  expect(relay.state.connections).toBe(0);
});

test('a peer that has gone without a word is forgotten after the idle timeout; one with keepalives stays', async () => {
  await using relay = await startRelay({ idleTimeoutMs: 500 });
  using silent = await join(relay.port, keyOf('silent'));
  using alive = await join(relay.port, keyOf('alive'));
  const timer = setInterval(() => alive.send(encodeKeepalive()), 100);
  await silent.untilClosed(3000).finally(() => clearInterval(timer));
  expect(alive.closed).toBe(false);
  expect(relay.state).toMatchObject({ registered: 1, tallies: { closed: { idle: 1 } } });
});

test('a relay that was held up reads what has come meanwhile before it calls anybody idle', async () => {
  await using relay = await startRelay({ idleTimeoutMs: 500 });
  using peer = await join(relay.port, keyOf('alive'));
  peer.send(encodeKeepalive());
  const heldUpUntil = performance.now() + 1500; // longer than the timeout, and a look at the deadlines is due
  while (performance.now() < heldUpUntil);
  peer.send(encodeData(keyOf('alive'), Buffer.from('here')));
  expect(await peer.next()).toMatchObject({ payload: Buffer.from('here') });
  expect(relay.state).toMatchObject({ registered: 1, tallies: { closed: { idle: 0 } } });
});

test('a second Register, unknown types, an Error and too short Data are ignored, and the key stays', async () => {
  await using relay = await startRelay();
  using peer = await join(relay.port, keyOf('me'));
  using friend = await join(relay.port, keyOf('friend'));
  peer.send(
    encodeRegister(keyOf('other')),
    encodeFrame(0x77, Buffer.from('what?')),
    encodeFrame(FRAME.error, Buffer.from('no')),
    encodeFrame(FRAME.data, Buffer.alloc(31)),
    encodeData(keyOf('friend'), Buffer.from('x')),
  );
  expect(await friend.next()).toMatchObject({ key: keyOf('me'), payload: Buffer.from('x') });
  expect(relay.state.tallies).toMatchObject({ ignored: 3, dropped: { malformed: 1 } });
});

test('a hundred connections that send a MiB of random bytes each do no harm', async () => {
  await using relay = await startRelay();
  using receiver = await join(relay.port, keyOf('receiver'));
  using sender = await join(relay.port, keyOf('sender'));
  const before = relay.state.heldBytes;
  const peers = Array.from({ length: 100 }, () => new TestPeer(connect({ port: relay.port, host: '127.0.0.1' })));
  for (const [index, peer] of peers.entries()) {
    // Half of them get past Register first.
    if (index % 2 === 0) peer.send(encodeRegister(keyOf(`random ${index}`)));
    peer.send(randomBytes(1024 * 1024));
  }
  sender.send(encodeData(keyOf('receiver'), Buffer.from('through')));
  expect(await receiver.next()).toMatchObject({ payload: Buffer.from('through') });
  // Random bytes may look like the beginning of one long frame: then the client ends it.
  await Promise.all(peers.map((peer) => peer.until('its end', () => peer.closed || peer.socket.writableLength === 0)));
  for (const peer of peers) peer.socket.destroy();
  await receiver.until('all are gone', () => {
    sender.send(encodeData(keyOf('receiver'), Buffer.from('tick')));
    return relay.state.connections === 2;
  });
  expect(relay.state.heldBytes).toBe(before);
});

test('random frames after Register never end the relay, whatever their types', async () => {
  await using relay = await startRelay();
  using receiver = await join(relay.port, keyOf('receiver'));
  for (let round = 0; round < 50; round++) {
    using peer = await dial(relay.port);
    peer.send(encodeRegister(keyOf('random')));
    for (let count = 0; count < 40; count++)
      peer.send(encodeFrame(randomBytes(1)[0]!, randomBytes(Math.floor(Math.random() * 200))));
    peer.send(encodeData(keyOf('receiver'), Buffer.from('done')));
    await peer.until('an answer or the end', () => receiver.frames.length > 0 || peer.closed);
    receiver.frames.length = 0;
  }
  expect(receiver.closed).toBe(false);
});

test('connections beyond the limits are refused, keys in all and connections for each address; others are served', async () => {
  await using relay = await startRelay({ maxConnections: 4, maxConnectionsPerAddress: 2 });
  using a = await join(relay.port, keyOf('a'));
  using b = await join(relay.port, keyOf('b'));
  using third = await dial(relay.port);
  await third.untilClosed(1000);
  using c = await dial(relay.port, '127.0.0.2');
  using d = await dial(relay.port, '127.0.0.3');
  for (const [peer, name] of [
    [c, 'c'],
    [d, 'd'],
  ] as const) {
    peer.send(encodeRegister(keyOf(name)), encodeData(keyOf(name), Buffer.from('self')));
    await peer.next();
  }
  using fifth = await dial(relay.port, '127.0.0.4');
  fifth.send(encodeRegister(keyOf('fifth')));
  expect(await fifth.next()).toMatchObject({ kind: 'error', text: expect.stringContaining('too many clients') });
  await fifth.untilClosed(4000);
  expect(relay.state.tallies).toMatchObject({ refused: { address: 1, rate: 0 }, closed: { 'too-many': 1 } });
  a.socket.destroy();
  await b.until('there is room again', () => {
    b.send(encodeData(keyOf('b'), Buffer.from('tick')));
    return relay.state.connections === 3;
  });
  using again = await join(relay.port, keyOf('again'));
  expect(again.closed).toBe(false);
});

test('connections without a key take no place of others: the oldest go, and their memory with them', async () => {
  await using relay = await startRelay({ maxPending: 32 });
  using a = await join(relay.port, keyOf('a'));
  const strangers: TestPeer[] = [];
  for (let index = 0; index < 200; index++) {
    const stranger = await dial(relay.port);
    stranger.send(Buffer.from(encodeRegister(keyOf(`stranger ${index}`))).subarray(0, index % 37));
    strangers.push(stranger);
  }
  using b = await join(relay.port, keyOf('b'));
  await b.until('the first have been cut', () => strangers.filter(({ closed }) => closed).length >= 168);
  a.send(encodeData(keyOf('b'), Buffer.from('through')));
  expect(await b.next()).toMatchObject({ payload: Buffer.from('through') });
  expect(strangers.slice(0, 160).every(({ closed }) => closed)).toBe(true);
  expect(relay.state.connections).toBeLessThanOrEqual(34);
  for (const stranger of strangers) stranger.socket.destroy();
});

test('a client without a key cannot make the relay keep long frames, or answers that it does not read', async () => {
  await using relay = await startRelay({ auth: 'require' });
  using long = await dial(relay.port);
  long.send(encodeRegister(keyOf('long')), hex('0000ffff02'), Buffer.alloc(30_000));
  const isCut = await long.untilClosed(3000).then(
    () => true,
    () => false,
  );
  expect(isCut).toBe(true);
  using pinging = await dial(relay.port);
  const hello = encodeExtension({ kind: 'hello', version: 1, capabilities: 15, nonce: Buffer.alloc(16), extras: [] });
  const ping = encodeExtension({ kind: 'ping', data: Buffer.alloc(8) });
  pinging.send(encodeRegister(keyOf('pinging')), hello, ...Array.from({ length: 10_000 }, () => ping));
  expect(await pinging.next()).toMatchObject({ kind: 'challenge' });
  expect(await pinging.next()).toMatchObject({ kind: 'error' });
  expect(relay.state.tallies.ignored).toBe(10_000);
});

test('pings beyond ten a second are not answered, nor a Hello that is repeated or long', async () => {
  await using relay = await startRelay();
  using peer = await dial(relay.port);
  const { hello } = await prove(peer, newKeys());
  const ping = encodeExtension({ kind: 'ping', data: Buffer.alloc(8) });
  peer.send(...Array.from({ length: 1000 }, () => [ping, hello]).flat(), encodeData(keyOf('absent'), Buffer.from('x')));
  await peer.until('the end', () => peer.frames.some((frame) => frame[4] === FRAME.peerGone));
  const pongs = peer.frames.filter((frame) => frame[4] === FRAME.pong).length;
  expect(pongs).toBeGreaterThanOrEqual(16);
  expect(pongs).toBeLessThan(100);
  expect(relay.state.tallies.ignored).toBe(2000 - pongs);
  using long = await dial(relay.port);
  long.send(encodeRegister(keyOf('long')), encodeFrame(FRAME.hello, Buffer.alloc(5000)));
  await long.until('it is passed over', () => relay.state.tallies.ignored === 2001 - pongs);
  expect(long.closed).toBe(false);
});

test('new connections of an address are limited in time, beyond a burst', async () => {
  await using relay = await startRelay({ newConnectionsPerSecond: 1 });
  const peers: TestPeer[] = [];
  for (let count = 0; count < 15; count++) peers.push(await dial(relay.port));
  await Promise.all(peers.slice(11).map((peer) => peer.untilClosed(5000)));
  expect(relay.state.tallies.refused.rate).toBeGreaterThanOrEqual(4);
  using elsewhere = await dial(relay.port, '127.0.0.9');
  elsewhere.send(encodeRegister(keyOf('elsewhere')), encodeData(keyOf('elsewhere'), Buffer.from('x')));
  expect(await elsewhere.next()).toMatchObject({ kind: 'data' });
  for (const peer of peers) peer.socket.destroy();
});

test('a sender above its rate is held back, and nothing is lost', async () => {
  await using relay = await startRelay({ bytesPerSecond: 1_000_000 });
  using receiver = await join(relay.port, keyOf('receiver'));
  using sender = await join(relay.port, keyOf('sender'));
  const start = performance.now();
  const frame = encodeData(keyOf('receiver'), Buffer.alloc(963, 4));
  for (let count = 0; count < 1500; count++) sender.send(frame);
  await receiver.until('all have come', () => receiver.frames.length === 1500);
  // 1.5 MB at 1 MB/s, of which a quarter of a second is free.
  expect(performance.now() - start).toBeGreaterThan(1000);
  expect(relay.state.tallies.held.rate).toBeGreaterThan(0);
});
