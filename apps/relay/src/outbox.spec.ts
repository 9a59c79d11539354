import type { Socket } from 'node:net';

import { DATA_HEAD_BYTES, encodeData } from '@unbounded/relay-protocol';
import { expect, test } from 'vitest';

import { Memory } from './memory.ts';
import { Outbox, type OutboxShared } from './outbox.ts';
import { newTallies } from './tallies.ts';

/** A connection whose kernel takes nothing until it is called back. */
const slowConnection = () => {
  const callbacks: (() => void)[] = [];
  const written: Buffer[] = [];
  const write = (bytes: Uint8Array, callback?: () => void): void => {
    if (callback) callbacks.push(callback);
    else written.push(Buffer.from(bytes));
  };
  const socket = { destroyed: false, writableLength: 100, write } as unknown as Socket;
  const memory = new Memory(1 << 20);
  const shared: OutboxShared = {
    ...{ memory, tallies: newTallies(), queueBytes: 1 << 16, headBytes: DATA_HEAD_BYTES, queueAge: () => {} },
  };
  const outbox = new Outbox(socket, shared);
  const taken = (): void => callbacks.splice(0).forEach((callback) => callback());
  return { memory, outbox, written, taken };
};

test('a buffer is used again once the kernel has taken it', () => {
  const { memory, outbox, taken } = slowConnection();
  const buffer = memory.take(100);
  outbox.write(buffer, 0, 100, 1);
  taken();
  expect(memory.take(100)).toBe(buffer);
  expect(memory.held).toBe(0);
});

test('the buffer of a connection that ends while it is written is used for nobody else', () => {
  const { memory, outbox, taken } = slowConnection();
  const buffer = memory.take(100);
  outbox.write(buffer, 0, 100, 1);
  outbox.close();
  expect(memory.take(100)).not.toBe(buffer);
  taken();
  expect(memory.take(100)).not.toBe(buffer);
  expect(memory.held).toBe(0);
});

const KEY = Buffer.alloc(32, 9);
const frameOf = (type: number, size: number): Buffer =>
  Buffer.from(encodeData(KEY, Buffer.concat([Buffer.of(type), Buffer.alloc(size - 1)])));
const INITIATION = frameOf(1, 148);
const DATA = frameOf(4, 1400);

const waiting = (...frames: readonly Buffer[]) => {
  const connection = slowConnection();
  const { memory, outbox } = connection;
  outbox.write(memory.take(100), 0, 100, 1);
  const add = (...more: readonly Buffer[]): void => {
    for (const frame of more) outbox.enqueue(frame, { start: 0, end: frame.length }, false, 1);
  };
  add(...frames);
  return { ...connection, add };
};

test('a handshake goes before data that waits, and data that begins like one does not', () => {
  const pretends = frameOf(1, 1400);
  const { written, taken } = waiting(DATA, pretends, INITIATION);
  taken();
  taken();
  expect(written.slice(1)).toEqual([INITIATION, Buffer.concat([DATA, pretends])]);
});

test('handshakes without end keep nobody’s data from going', () => {
  const { written, taken, add } = waiting(DATA);
  for (let round = 0; round < 3; round++) {
    add(...Array.from({ length: 300 }, () => INITIATION));
    taken();
  }
  expect(written.some((bytes) => bytes.includes(DATA))).toBe(true);
});
