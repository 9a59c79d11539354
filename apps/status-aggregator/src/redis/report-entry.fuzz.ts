import assert from 'node:assert/strict';
import type { FuzzTarget } from '@unbounded/testing';
import { epochJson, parseHeldValue, parseReportEntry } from './report-entry.codec.ts';

/** A value of the hash, and fields of an entry, of whoever may write to Redis. */
const run = (input: Uint8Array): void => {
  const bytes = Buffer.from(input);
  const held = parseHeldValue(bytes);
  if (held) {
    // Date takes it, JSON has it in one line, and it is read back.
    assert.ok(new Date(held.receivedMs).toISOString().length > 0);
    const head = `v1\n${held.order}\n${held.receivedMs}\n${epochJson(held.epoch)}\n${held.revision}\n`;
    assert.deepEqual(parseHeldValue(Buffer.concat([Buffer.from(head), held.packed])), held);
  }
  const [n, e, r, b, t, q] = bytes.toString().split('\n');
  const fields = Object.entries({ n, e, r, b, t, q, d: '' }).map(
    ([name, text]) => [name, Buffer.from(text ?? '')] as const,
  );
  const entry = parseReportEntry(new Map(fields));
  if (!entry) return;
  assert.match(entry.node, /^[a-z0-9.-]{1,253}$/);
  assert.ok([entry.revision, entry.receivedMs, entry.order, entry.base ?? 1].every(Number.isSafeInteger));
};

const seed = (text: string): Uint8Array => new TextEncoder().encode(text);

export const target: FuzzTarget = {
  run,
  seeds: [
    seed('v1\n7\n1700000000000\n"e"\n3\npacked'),
    seed('n1.example\n"e"\n3\n2\n1700000000000\n7'),
    seed('n1\n"e"\n1\n\n1\n1'),
  ],
  tokens: ['v1\n', '"', '\\u', '9007199254740991', '8640000000000001'].map(seed),
  maxBytes: 600,
};
