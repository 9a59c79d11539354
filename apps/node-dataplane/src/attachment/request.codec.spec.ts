import fc from 'fast-check';
import { expect, test } from 'vitest';
import { decodeRequest, LARGEST_REQUEST } from './request.codec.ts';

const encode = (environment: Record<string, string>, config: string): Uint8Array => {
  const variables = new TextEncoder().encode(
    Object.entries(environment)
      .map(([name, value]) => `${name}=${value}\0`)
      .join(''),
  );
  const input = new TextEncoder().encode(config);
  const bytes = new Uint8Array(8 + variables.length + 1 + input.length);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, variables.length, true);
  view.setUint32(4, input.length, true);
  bytes.set(variables, 8);
  bytes.set(input, 8 + variables.length + 1);
  return bytes;
};

const names = fc.stringMatching(/^CNI_[A-Z]{1,8}$/);
const values = fc.string({ unit: 'grapheme' }).filter((text) => !text.includes('\0'));

test('environment and configuration come out as they went in', () => {
  fc.assert(
    fc.property(
      fc.dictionary(names, values, { noNullPrototype: true }),
      fc.string({ unit: 'grapheme' }),
      (environment, config) => {
        expect(decodeRequest(encode(environment, config))).toEqual({ environment, config });
      },
    ),
  );
});

test('every beginning of a request asks for more', () => {
  const whole = encode({ CNI_COMMAND: 'ADD', CNI_ARGS: 'A=1;B=2' }, '{"cniVersion":"1.0.0"}');
  for (let length = 0; length < whole.length; length++)
    expect(decodeRequest(whole.subarray(0, length))).toBeUndefined();
});

test('bytes beyond the request, and bytes around it in the buffer, do not matter', () => {
  const whole = encode({ CNI_COMMAND: 'DEL' }, 'x');
  const buffer = new Uint8Array(whole.length + 20).fill(0xff);
  buffer.set(whole, 5);
  expect(decodeRequest(buffer.subarray(5))).toEqual({ environment: { CNI_COMMAND: 'DEL' }, config: 'x' });
});

test('whatever the bytes, there is a request, a wish for more or a RangeError', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      try {
        decodeRequest(bytes);
      } catch (error) {
        expect(error).toBeInstanceOf(RangeError);
      }
    }),
  );
});

test('lengths that are too large are refused before the bytes are there', () => {
  const header = new Uint8Array(8);
  new DataView(header.buffer).setUint32(0, 0xffff_ffff, true);
  expect(() => decodeRequest(header)).toThrow(`at most ${LARGEST_REQUEST} are read`);
});
