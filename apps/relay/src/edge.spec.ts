import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join as pathJoin } from 'node:path';
import { connect as connectTls } from 'node:tls';

import { certificateSource } from '@unbounded/host/certificate';
import { encodeData, encodeRegister } from '@unbounded/relay-protocol';
import { silentLogger } from '@unbounded/telemetry';
import { makeSelfSigned } from '@unbounded/testing/self-signed';
import { afterAll, beforeAll, expect, test } from 'vitest';

import { dial, join, keyOf, newKeys, prove, TestPeer } from '@unbounded/relay-testing/peer';
import { startRelay } from './test/test-relay.ts';

let folder = '';
const file = (name: string): string => pathJoin(folder, name);
beforeAll(() => {
  folder = mkdtempSync(pathJoin(tmpdir(), 'relay-'));
  makeSelfSigned('relay', { key: file('key'), cert: file('cert') });
});
afterAll(() => rmSync(folder, { recursive: true }));

const certificate = () => {
  const source = certificateSource({ cert: file('cert'), key: file('key') }, silentLogger);
  return () => source().secureContext;
};

const dialTls = async (port: number): Promise<TestPeer> => {
  const socket = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false });
  await once(socket, 'secureConnect');
  return new TestPeer(socket);
};

test('one port serves TLS and plain connections, and they reach each other', async () => {
  await using relay = await startRelay({ secureContext: certificate() });
  using plain = await join(relay.port, keyOf('plain'));
  using secure = await dialTls(relay.port);
  const { ready } = await prove(secure, newKeys());
  expect(ready).toMatchObject({ kind: 'ready', isOurs: true });
  using other = await dialTls(relay.port);
  other.send(encodeRegister(keyOf('other')));
  const payloads = Array.from({ length: 300 }, (_, index) => Buffer.alloc(1400, 4 + (index % 200)));
  other.send(...payloads.map((payload) => encodeData(keyOf('plain'), payload)));
  await plain.until('all', () => plain.frames.length === 300);
  expect(plain.frames.map((frame) => frame.subarray(37))).toEqual(payloads);
  plain.send(...payloads.map((payload) => encodeData(keyOf('other'), payload)));
  await other.until('all', () => other.frames.length === 300);
  expect(other.frames.map((frame) => frame.subarray(37))).toEqual(payloads);
  other.socket.destroy();
  await plain.until('it is gone', () => relay.state.connections === 2);
});

test('a TLS handshake that is none, or never ends, is cut', async () => {
  await using relay = await startRelay({ secureContext: certificate(), registerDeadlineMs: 200 });
  using garbage = await dial(relay.port);
  garbage.send(Buffer.from('16030100050100000100', 'hex'), Buffer.alloc(100, 0x41));
  using waiting = await dial(relay.port);
  waiting.send(Buffer.from('1603010200', 'hex'));
  await garbage.untilClosed(3000);
  await waiting.untilClosed(3000);
  expect(relay.state.connections).toBe(0);
});

test('a changed certificate that cannot be read leaves the old one', () => {
  const source = certificate();
  const before = source();
  writeFileSync(file('cert'), 'no certificate');
  expect(source()).toBe(before);
});

const SIGNATURE = '0d0a0d0a000d0a515549540a';
const proxyHeader = (source: readonly number[], tlvs = ''): Buffer => {
  const addresses = Buffer.concat([
    Buffer.from([...source, 127, 0, 0, 1, 0x10, 0, 0x0d, 0x96]),
    Buffer.from(tlvs, 'hex'),
  ]);
  return Buffer.concat([Buffer.from(`${SIGNATURE}2111`, 'hex'), Buffer.from([0, addresses.length]), addresses]);
};

test('behind a balancer limits hold for the addresses that its PROXY headers name', async () => {
  await using relay = await startRelay({
    isProxy: (address) => address === '127.0.0.1',
    maxConnectionsPerAddress: 1,
  });
  const through = async (source: readonly number[]): Promise<TestPeer> => {
    const peer = await dial(relay.port);
    return peer.send(proxyHeader(source, '04000100'), encodeRegister(keyOf(source.join())));
  };
  using a = await through([203, 0, 113, 1]);
  using again = await through([203, 0, 113, 1]);
  await again.untilClosed(1000);
  using b = await through([203, 0, 113, 2]);
  b.send(encodeData(keyOf('203,0,113,1'), Buffer.from('hello')));
  expect(await a.next()).toMatchObject({ payload: Buffer.from('hello') });
  expect(relay.state.tallies.refused.address).toBe(1);
});

test('a PROXY header that comes byte by byte is understood; a missing or wrong one ends the connection', async () => {
  await using relay = await startRelay({ isProxy: (address) => address === '127.0.0.1' });
  using slow = await dial(relay.port);
  const stream = Buffer.concat([
    proxyHeader([203, 0, 113, 1]),
    encodeRegister(keyOf('slow')),
    encodeData(keyOf('slow'), Buffer.from('self')),
  ]);
  for (const byte of stream) await new Promise((resolve) => slow.socket.write(Buffer.of(byte), resolve));
  expect(await slow.next()).toMatchObject({ payload: Buffer.from('self') });
  using none = await dial(relay.port);
  none.send(encodeRegister(keyOf('none')));
  await none.untilClosed(1000);
  using wrong = await dial(relay.port);
  wrong.send(Buffer.from(`${SIGNATURE}3111000c`, 'hex'), Buffer.alloc(12));
  await wrong.untilClosed(1000);
  expect(relay.state.tallies.closed.proxy).toBe(2);
});

test('from an address that is no balancer a PROXY header is no Register', async () => {
  await using relay = await startRelay({ isProxy: (address) => address === '127.0.0.5' });
  using peer = await dial(relay.port);
  peer.send(proxyHeader([203, 0, 113, 1]));
  await peer.untilClosed(1000);
  expect(relay.state.tallies.closed['no-register']).toBe(1);
});
