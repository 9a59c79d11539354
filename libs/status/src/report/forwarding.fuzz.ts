import assert from 'node:assert/strict';
import type { FuzzTarget } from '@unbounded/testing';
import { parseForwarding } from './forwarding.ts';

/** Answers of a hostile node: refused with a message of bounded length, or read as a document that is read the same again. */

const LONGEST_ERROR = 4096;

const valueOf = (bytes: Uint8Array): unknown => {
  try {
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return undefined;
  }
};

const run = (bytes: Uint8Array): void => {
  const parsed = parseForwarding(valueOf(bytes));
  if (!parsed.ok) return assert.ok(parsed.error.length > 0 && parsed.error.length < LONGEST_ERROR, parsed.error);
  assert.deepEqual(parseForwarding(JSON.parse(JSON.stringify(parsed.value))), parsed);
  assert.equal(({} as Record<string, unknown>)['polluted'], undefined);
};

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);

export const target: FuzzTarget = {
  run,
  seeds: [
    '{"readTime":"t","dataplane":"ebpf","total":1,"different":0,"entries":[]}',
    '{"readTime":"t","dataplane":"ebpf","total":1,"different":1,"entries":[{"table":"t","key":"k","state":"Missing","wanted":[{"device":"d","via":"1.2.3.4","kind":"vxlan","group":"g","mtuBytes":9}]}]}',
    '{"readTime":"t","dataplane":"x","total":1,"different":1,"entries":[{"table":"t","key":"k","state":"Unwanted","present":[]}]}',
  ].map(encode),
  tokens: ['"__proto__":{"polluted":true}', '"entries":[', '"present":[{', '"state":', 'null', '1e999'].map(encode),
  maxBytes: 600,
};
