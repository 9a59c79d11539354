import { randomBytes } from 'node:crypto';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join as pathJoin } from 'node:path';

import { encodeData } from '@unbounded/relay-protocol';
import { makeSelfSigned } from '@unbounded/testing/self-signed';
import { afterAll, beforeAll, expect, test } from 'vitest';

import { type Program, startProgram } from './test/program.testdata.ts';
import { strangerAttempts, type StrangerTarget } from '@unbounded/relay-testing/strangers';
import { dial, newKeys, prove, type TestPeer } from '@unbounded/relay-testing/peer';

/** A real relay as it stands on the Internet, two members that talk all the time, and strangers who try what they can. */

let folder: string;
let relay: Program;
let target: StrangerTarget;
const members = [newKeys(), newKeys()] as const;
const peers: TestPeer[] = [];
const file = (name: string): string => pathJoin(folder, name);
/** Frames that each member has sent to the other. */
let sent = 0;
let talking: NodeJS.Timeout;
const memoryKiB = (): number =>
  Number(/^RssAnon:\s+(\d+)/m.exec(readFileSync(`/proc/${relay.child.pid}/status`, 'utf8'))![1]);
let memoryBefore: number;

const talk = (): void => {
  sent++;
  for (const [index, peer] of peers.entries()) {
    const payload = Buffer.alloc(200, 4);
    payload.writeUInt32BE(sent, 4);
    peer.send(encodeData(members[1 - index]!.publicKey, payload));
  }
};

beforeAll(async () => {
  folder = mkdtempSync(pathJoin(tmpdir(), 'relay-'));
  chmodSync(folder, 0o755);
  writeFileSync(file('keys'), members.map(({ publicKey }) => `${publicKey.toString('base64')}\n`).join(''));
  writeFileSync(file('secret'), randomBytes(32));
  makeSelfSigned('relay', { key: file('key'), cert: file('cert') });
  for (const name of ['key', 'secret']) chmodSync(file(name), 0o644);
  relay = await startProgram(4096, [
    ...['--auth', 'require', '--allowed-keys', file('keys'), '--tls-cert', file('cert'), '--tls-key', file('key')],
    ...['--link-addr', '127.0.0.1:0', '--link-secret-file', file('secret'), '--register-deadline', '2s'],
    ...['--proof-deadline', '2s', '--max-pending', '128'],
  ]);
  const proven = [];
  for (const keys of members) {
    const peer = await dial(relay.port);
    peers.push(peer);
    proven.push(await prove(peer, keys));
  }
  target = {
    host: '127.0.0.1',
    port: relay.port,
    linkPort: relay.linkPort!,
    healthPort: relay.healthPort,
    memberKey: members[0].publicKey,
    recorded: proven[0]!,
    // Each attempt has the whole of what one address may do.
    from: (attempt) => `127.0.1.${attempt + 1}`,
  };
  talking = setInterval(talk, 2);
  memoryBefore = memoryKiB();
});
afterAll(async () => {
  clearInterval(talking);
  for (const peer of peers) peer.socket.destroy();
  await relay?.[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

test('there are enough of them', () => expect(strangerAttempts.length).toBeGreaterThanOrEqual(25));

test.each(strangerAttempts.map((attempt, index) => [attempt.name, attempt, index] as const))(
  'a stranger gains nothing by %s',
  async (_name, attempt, index) => {
    await attempt.run(target, index);
    expect(relay.child.exitCode).toBeNull();
    expect(peers.map(({ closed }) => closed)).toEqual([false, false]);
  },
  30_000,
);

test('new members are let in, and the port of health answers, while strangers hold what they can', async () => {
  const floods = strangerAttempts.filter(({ name }) => /hundred/.test(name));
  const running = floods.map((attempt, index) => attempt.run(target, 100 + index));
  for (let count = 0; count < 5; count++) {
    using again = await dial(relay.port, '127.0.2.1');
    const late = newKeys();
    writeFileSync(
      file('keys'),
      [...members, late].map(({ publicKey }) => `${publicKey.toString('base64')}\n`).join(''),
    );
    let kind: unknown;
    for (let attempt = 0; attempt < 40 && kind !== 'ready'; attempt++) {
      using peer = await dial(relay.port, '127.0.2.1');
      ({ kind } = await prove(peer, late).then(
        ({ ready }) => ready,
        () => ({ kind: 'cut' }),
      ));
      if (kind !== 'ready') await new Promise((resolve) => setTimeout(resolve, 100));
    }
    expect(kind).toBe('ready');
    again.socket.destroy();
  }
  const health = await fetch(`http://127.0.0.1:${relay.healthPort}/readyz`, { headers: { connection: 'close' } });
  expect(health.status).toBe(200);
  await Promise.all(running);
}, 60_000);

test('the members have lost nothing of what they sent each other, and nothing of strangers came to them', async () => {
  clearInterval(talking);
  for (const [index, peer] of peers.entries()) {
    await peer.until('the last frame', () => peer.frames.length >= sent);
    expect(peer.frames.map((frame) => frame.readUInt32BE(41))).toEqual(Array.from({ length: sent }, (_, at) => at + 1));
    const sender = members[1 - index]!.publicKey;
    expect(peer.frames.every((frame) => frame.subarray(5, 37).equals(sender))).toBe(true);
  }
  expect(sent).toBeGreaterThan(1000);
  expect(memoryKiB() - memoryBefore).toBeLessThan(150 * 1024);
  console.log(`${sent} frames each way; ${Math.round((memoryKiB() - memoryBefore) / 1024)} MiB more than before`);
});
