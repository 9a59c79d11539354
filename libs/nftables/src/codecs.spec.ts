import * as fc from 'fast-check';
import { NetlinkDecodeError } from '@unbounded/netlink';
import { describe, expect, test } from 'vitest';

import { compileRule } from './expression.codec.ts';
import { readBody, readChain, readElements, readRule, readSet, sameInstructions } from './observed.codec.ts';
import { elementsOf } from './set.codec.ts';
import type { Expression } from './table.ts';
import { decodeComment, encodeComment } from './wire.codec.ts';

describe('decoders of what the kernel says', () => {
  test.each([
    ['chains', readChain],
    ['rules', readRule],
    ['sets', readSet],
    ['elements', readElements],
  ])('%s: any bytes are read, or refused by NetlinkDecodeError', (_, read) => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        try {
          read(readBody(bytes));
        } catch (error) {
          expect(error).toBeInstanceOf(NetlinkDecodeError);
        }
      }),
    );
  });

  test('a comment is read back, and any user data is read without error', () => {
    fc.assert(
      fc.property(
        fc.string({ maxLength: 30 }).filter((text) => !text.includes('\0')),
        (text) => {
          expect(decodeComment(encodeComment(text))).toBe(text);
        },
      ),
    );
    fc.assert(fc.property(fc.uint8Array(), (bytes) => void decodeComment(bytes)));
  });
});

describe('intervals', () => {
  test('cover each prefix once, whatever overlaps', () => {
    const texts = ['10.0.0.0/8', '10.1.0.0/16', '11.0.0.0/8', '0.0.0.0/5', '255.0.0.0/8'];
    const shown = elementsOf({ type: 'ipv4', elements: texts }).map(
      ({ key, isEnd }) => `${isEnd ? 'end ' : ''}${key.join('.')}`,
    );
    expect(shown).toEqual(['0.0.0.0', 'end 8.0.0.0', '10.0.0.0', 'end 12.0.0.0', '255.0.0.0']);
  });
});

describe('rules', () => {
  const drop: Expression = { do: 'drop' };
  test.each<[string, Expression[]]>([
    ['a name of 16 bytes', [{ match: 'meta', key: 'iifname', op: '==', value: 'a123456789012345' }, drop]],
    [
      'an IPv6 address in an IPv4 field',
      [{ match: 'payload', field: 'ip.saddr', op: '==', value: '2001:db8::1' }, drop],
    ],
    [
      'both families in one rule',
      [
        { match: 'set', field: 'ip.saddr', op: '==', set: 'a' },
        { match: 'set', field: 'ip6.saddr', op: '==', set: 'b' },
        drop,
      ],
    ],
    ['a port past 16 bits', [{ match: 'payload', field: 'th.dport', op: '==', value: 70_000 }, drop]],
    ['a mark outside its mask', [{ set: 'mark', value: 0x1200, mask: 0xf00 }]],
  ])('%s is refused', (_, expressions) => {
    expect(() => compileRule('inet', expressions)).toThrow(RangeError);
  });

  test('differ when one flag differs', () => {
    const [same, other] = (['==', '!='] as const).map((op) =>
      compileRule('inet', [{ match: 'set', field: 'ip.saddr', op, set: 'a' }, drop]),
    );
    if (!same || !other) throw new Error('no rules');
    expect(sameInstructions(same, same)).toBe(true);
    expect(sameInstructions(same, other)).toBe(false);
    expect(sameInstructions(other, same)).toBe(false);
  });
});
