import { expect, test } from 'vitest';

import { DocumentedRelay } from './documented-relay.ts';
import { decodeMessage, encodeData, encodeExtension, encodeKeepalive, encodeRegister } from './index.ts';

const connection = (relay: DocumentedRelay) => {
  const got: Uint8Array[] = [];
  const state = { got, isClosed: false };
  const session = relay.connect({
    send: (bytes) => got.push(bytes),
    close: () => {
      state.isClosed = true;
    },
  });
  return {
    state,
    say: (...frames: Uint8Array[]) => session.onBytes(Buffer.concat(frames)),
    end: () => session.onEnd(),
  };
};
const key = (byte: number): Uint8Array => new Uint8Array(32).fill(byte);

test('it forwards with the sender’s key, and answers nothing to anything', () => {
  const relay = new DocumentedRelay();
  const [a, b] = [connection(relay), connection(relay)];
  const hello = encodeExtension({ kind: 'hello', version: 1, capabilities: 15, nonce: new Uint8Array(16), extras: [] });
  a.say(encodeRegister(key(1)), hello, encodeKeepalive());
  b.say(encodeRegister(key(2)));
  a.say(encodeData(key(2), Uint8Array.of(9)), encodeData(key(3), Uint8Array.of(8)));
  expect(a.state.got).toEqual([]);
  expect(b.state.got.map((frame) => decodeMessage(frame))).toMatchObject([{ kind: 'data', payload: Uint8Array.of(9) }]);
});

test('the newest connection has a key, and the end of an older one takes nothing from it', () => {
  const relay = new DocumentedRelay();
  const [a, b] = [connection(relay), connection(relay)];
  a.say(encodeRegister(key(1)));
  b.say(encodeRegister(key(1)));
  a.end();
  expect([a.state.isClosed, b.state.isClosed, relay.registered]).toEqual([true, false, 1]);
  b.end();
  expect(relay.registered).toBe(0);
});

test('a first frame that is no Register, and an illegal length, end the connection', () => {
  for (const bytes of [encodeKeepalive(), Uint8Array.of(0xff, 0xff, 0xff, 0xff)]) {
    const one = connection(new DocumentedRelay());
    one.say(bytes);
    expect(one.state.isClosed).toBe(true);
  }
});
