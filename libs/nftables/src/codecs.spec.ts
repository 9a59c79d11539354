import * as fc from 'fast-check';
import { addressToBytes, containsAddress, formatPrefix, parseAddress, parsePrefix, prefixOf } from '@unbounded/ip';
import { NetlinkDecodeError } from '@unbounded/netlink';
import { describe, expect, test } from 'vitest';

import { changesTable } from './change.codec.ts';
import { compileRule } from './expression.codec.ts';
import { readBody, readChain, readElements, readRule, readSet, sameInstructions } from './observed.codec.ts';
import { elementsOf } from './set.codec.ts';
import { createTable, deleteTable, fillTable } from './table.codec.ts';
import type { Expression, SetSpec } from './table.ts';
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

  test('what was sent is read back, and refused by NetlinkDecodeError or read when bytes of it are others or missing', () => {
    const set: SetSpec = { name: 's', type: 'ipv6 . ipv4', elements: ['fd00::1 . 10.0.0.0/8', 'fd00::2 . 10.0.0.1'] };
    const [create, fill] = fillTable({ family: 'inet', name: 't', sets: [set], chains: [] });
    if (!create || !fill) throw new Error('no messages');
    expect(readSet(readBody(create.body))).toMatchObject({ name: 's', keyLength: 20, fields: [16, 4] });
    expect(readElements(readBody(fill.body))).toEqual(elementsOf(set));
    const changes = fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 4 });
    fc.assert(
      fc.property(fc.constantFrom(create.body, fill.body), changes, fc.nat(), (body, bytes, length) => {
        const changed = body.slice(0, length % (body.length + 1));
        for (const [at, byte] of bytes) if (changed.length > 0) changed[at % changed.length] = byte;
        for (const read of [readSet, readElements]) {
          try {
            read(readBody(changed));
          } catch (error) {
            expect(error).toBeInstanceOf(NetlinkDecodeError);
          }
        }
      }),
      { numRuns: 1000 },
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

const ADDRESS = { ipv4: fc.ipV4(), ipv6: fc.ipV6() } as const;
const BITS = { ipv4: 32, ipv6: 128 } as const;

describe('pairs of an address and a prefix', () => {
  const valueOf = (bytes: Uint8Array): bigint => bytes.reduce((sum, byte) => sum * 256n + BigInt(byte), 0n);
  const blockOf = ([ip, length]: [string, number]): string => formatPrefix(prefixOf(parseAddress(ip), length));
  const anyPairs = fc
    .record({ first: fc.constantFrom('ipv4', 'ipv6'), second: fc.constantFrom('ipv4', 'ipv6') })
    .chain(({ first, second }) =>
      fc.record({
        first: fc.constant(first),
        second: fc.constant(second),
        peers: fc.array(ADDRESS[first], { minLength: 1, maxLength: 3 }),
        blocks: fc.array(fc.tuple(fc.nat(2), fc.tuple(ADDRESS[second], fc.nat(BITS[second])).map(blockOf)), {
          maxLength: 12,
        }),
        asked: fc.tuple(fc.nat(2), ADDRESS[second]),
      }),
    );

  test('hold an address of a peer exactly if one of its prefixes does, in intervals that neither touch nor overlap', () => {
    fc.assert(
      fc.property(anyPairs, ({ first, second, peers, blocks, asked }) => {
        const peerAt = (index: number): string => peers[index % peers.length]!;
        const elements = blocks.map(([peer, block]) => `${peerAt(peer)} . ${block}`);
        const length = BITS[first] / 8;
        const intervals = elementsOf({ type: `${first} . ${second}`, elements }).map(({ key, lastKey }) => {
          expect(lastKey!.subarray(0, length)).toEqual(key.subarray(0, length));
          const peer = key.subarray(0, length).join();
          return { peer, from: valueOf(key.subarray(length)), to: valueOf(lastKey!.subarray(length)) };
        });
        for (const peer of new Set(intervals.map((interval) => interval.peer))) {
          const own = intervals.filter((interval) => interval.peer === peer);
          own.forEach(({ from }, index) => index > 0 && expect(from).toBeGreaterThan(own[index - 1]!.to + 1n));
        }
        const askedPeer = addressToBytes(parseAddress(peerAt(asked[0])));
        const { value } = parseAddress(asked[1]);
        const wanted = elements.some((text) => {
          const [peer, block] = text.split(' . ') as [string, string];
          const isPeer = addressToBytes(parseAddress(peer)).join() === askedPeer.join();
          return isPeer && containsAddress(parsePrefix(block), parseAddress(asked[1]));
        });
        const found = intervals.some(({ peer, from, to }) => peer === askedPeer.join() && from <= value && value <= to);
        expect(found).toBe(wanted);
      }),
      { numRuns: 300 },
    );
  });

  test.each([
    ['a prefix in the place of the address', '10.0.0.0/8 . 10.0.0.0/8'],
    ['only one half', '10.0.0.1'],
    ['a third one', '10.0.0.1 . 10.0.0.0/8 . 10.0.0.0/8'],
    ['another family', '10.0.0.1 . fd00::/8'],
    ['an address of another family', 'fd00::1 . 10.0.0.0/8'],
  ])('%s is refused', (_, element) => {
    expect(() => elementsOf({ type: 'ipv4 . ipv4', elements: [element] })).toThrow(/set element/);
  });
});

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

/** Netlink attributes of 4 bytes in network order: a type, then its number, and so on. */
const attributes = (...numbers: readonly number[]): string => {
  const bytes = Buffer.alloc(4 * numbers.length);
  for (let at = 0; at < numbers.length; at += 2) {
    bytes.writeUInt16LE(8, 4 * at);
    bytes.writeUInt16LE(numbers[at]!, 4 * at + 2);
    bytes.writeUInt32BE(numbers[at + 1]!, 4 * at + 4);
  }
  return hex(bytes);
};

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
    [
      'a raw field that no offset reaches',
      [{ match: 'raw', field: { base: 'transport', offsetBytes: 256, lengthBytes: 1 }, op: '==', value: 0 }, drop],
    ],
    [
      'a raw field that no register holds',
      [{ match: 'raw', field: { base: 'transport', offsetBytes: 0, lengthBytes: 17 }, op: '==', value: 0 }, drop],
    ],
    [
      'a raw field that is shorter than its value',
      [{ match: 'raw', field: { base: 'transport', offsetBytes: 0, lengthBytes: 1 }, op: '==', value: 256 }, drop],
    ],
    [
      'a raw field that is shorter than its mask',
      [
        {
          match: 'raw',
          field: { base: 'transport', offsetBytes: 0, lengthBytes: 1 },
          op: '==',
          value: 0,
          mask: 0x100,
        },
        drop,
      ],
    ],
    [
      'a pair whose second half begins within a word',
      [{ match: 'pair', fields: ['th.dport', 'ip.saddr'], op: '==', set: 'a' }, drop],
    ],
    ['a port past 16 bits', [{ match: 'payload', field: 'th.dport', op: '==', value: 70_000 }, drop]],
    ['a mark outside its mask', [{ set: 'mark', value: 0x1200, mask: 0xf00 }]],
  ])('%s is refused', (_, expressions) => {
    expect(() => compileRule('inet', expressions)).toThrow(RangeError);
  });

  test.each<[string, Expression, string[]]>([
    [
      'IPv4, with the checksum of its header',
      { set: 'ip.daddr', to: '192.0.2.1' },
      ['meta', 'cmp', 'immediate', `payload ${attributes(5, 1, 2, 1, 3, 16, 4, 4, 6, 1, 7, 10, 8, 1)}`],
    ],
    [
      'IPv6, whose header has none',
      { set: 'ip6.daddr', to: '2001:db8::1' },
      ['meta', 'cmp', 'immediate', `payload ${attributes(5, 1, 2, 1, 3, 24, 4, 16, 6, 0, 7, 0, 8, 1)}`],
    ],
  ])('a destination is written to packets of %s', (_, expression, wanted) => {
    const written = compileRule('inet', [expression]);
    const shown = written.map(({ name, data }) => (name === 'payload' ? `${name} ${hex(data)}` : name));
    expect(shown).toEqual(wanted);
  });

  test.each([
    { set: 'ip.daddr', to: '2001:db8::1' },
    { set: 'ip6.daddr', to: '192.0.2.1' },
  ] as const)('a destination of the other family is refused by name: $to', (expression) => {
    const text = `${expression.set} ${expression.to} is of the wrong family`;
    expect(() => compileRule('inet', [expression])).toThrow(new RangeError(text));
  });

  test('a destination is not written in a table of the other family', () => {
    expect(() => compileRule('ip6', [{ set: 'ip.daddr', to: '192.0.2.1' }])).toThrow('a rule for ip6 packets');
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

describe('messages that tell of a change', () => {
  const table = { family: 'inet', name: 'unbounded', chains: [{ name: 'c', rules: [] }] } as const;
  const isOurs = (message: Parameters<typeof changesTable>[0]): boolean => changesTable(message, 'inet', 'unbounded');

  test('concern the table that they name first, and its family only', () => {
    for (const message of [createTable(table), deleteTable(table), ...fillTable(table)])
      expect(isOurs(message)).toBe(true);
    for (const other of [
      { ...table, name: 'unbounded2' },
      { ...table, name: 'unbound' },
      { ...table, family: 'ip' as const },
    ])
      for (const message of [createTable(other), ...fillTable(other)]) expect(isOurs(message)).toBe(false);
  });

  test('any bytes are ours or not, without an error', () => {
    fc.assert(
      fc.property(fc.nat(0xffff), fc.uint8Array({ maxLength: 40 }), (type, body) => void isOurs({ type, body })),
    );
  });
});
