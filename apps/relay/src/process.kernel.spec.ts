import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';

import { encodeData } from '@unbounded/relay-protocol';
import { expect, test } from 'vitest';

import { type Program, startProgram } from './test/program.testdata.ts';
import { dial, join, keyOf, newKeys, prove, TestPeer } from '@unbounded/relay-testing/peer';

const metric = async ({ healthPort }: Program, name: string): Promise<number> => {
  const text = await (await fetch(`http://127.0.0.1:${healthPort}/metrics`)).text();
  return Number(new RegExp(`^${name} (.*)$`, 'm').exec(text)?.[1]);
};

test('without any privilege it listens, says that it is ready, counts, and drains on SIGTERM', async () => {
  await using program = await startProgram(1024, ['--drain-time', '300ms']);
  expect((await fetch(`http://127.0.0.1:${program.healthPort}/readyz`)).status).toBe(200);
  using a = await dial(program.port);
  await prove(a, newKeys());
  using b = await join(program.port, keyOf('b'));
  a.send(encodeData(keyOf('b'), Buffer.alloc(1000, 4)));
  await b.next();
  await a.until('it has been counted', () => true);
  while ((await metric(program, 'unbounded_relay_frames_total')) < 2)
    await new Promise((resolve) => setImmediate(resolve));
  expect(await metric(program, 'unbounded_relay_registered_keys')).toBe(2);
  expect(await metric(program, 'unbounded_relay_handshakes_total{result="proven"}')).toBe(1);
  program.child.kill('SIGTERM');
  expect(await a.next()).toMatchObject({ kind: 'drain' });
  const [code] = (await once(program.child, 'exit')) as [number];
  expect(code).toBe(0);
});

/** Descriptors that Node itself, the health server and a few sockets need. */
const DESCRIPTORS = 110;

test('when descriptors run out clients go on talking, and new ones come in as soon as there is room', async () => {
  await using program = await startProgram(DESCRIPTORS, ['--max-connections', '100000']);
  using a = await join(program.port, keyOf('a'));
  using b = await join(program.port, keyOf('b'));
  const flood = Array.from({ length: 300 }, () => new TestPeer(connect({ port: program.port, host: '127.0.0.1' })));
  await a.until('most of them have been refused', () => flood.filter(({ closed }) => closed).length > 200);
  a.send(encodeData(keyOf('b'), Buffer.from('still here')));
  expect(await b.next()).toMatchObject({ payload: Buffer.from('still here') });
  for (const peer of flood) peer.socket.destroy();
  let late: TestPeer | undefined;
  for (let attempt = 0; late === undefined && attempt < 100; attempt++)
    late = await join(program.port, keyOf('late')).catch(() => undefined);
  late!.send(encodeData(keyOf('a'), Buffer.from('new')));
  expect(await a.next()).toMatchObject({ payload: Buffer.from('new') });
  late!.socket.destroy();
});

test('more descriptors wanted than there are, by whoever opens them: the relay does not end', async () => {
  // The limit of connections lies above the descriptors, as when something else has taken them.
  await using program = await startProgram(DESCRIPTORS, ['--register-deadline', '2s']);
  using a = await join(program.port, keyOf('a'));
  const { pid } = program.child;
  const used = Array.from({ length: 300 }, () => new TestPeer(connect({ port: program.port, host: '127.0.0.1' })));
  spawn('prlimit', ['--pid', String(pid), '--nofile=30:110']);
  const more = Array.from({ length: 100 }, () => new TestPeer(connect({ port: program.port, host: '127.0.0.1' })));
  await a.until('they are cut', () => more.every(({ closed }) => closed), 10_000);
  a.send(encodeData(keyOf('a'), Buffer.from('self')));
  expect(await a.next()).toMatchObject({ payload: Buffer.from('self') });
  for (const peer of [...used, ...more]) peer.socket.destroy();
});
