import { inspect } from 'node:util';

import * as fc from 'fast-check';
import { NetlinkDecodeError, readAttributes } from '@unbounded/netlink';
import { describe, expect, test } from 'vitest';

import { decodeDevice, encodeChange, joinParts } from './generic.codec.ts';
import {
  afterChange,
  type DeviceSpec,
  type DeviceState,
  diffDevice,
  generatePrivateKey,
  isKey,
  parseEndpoint,
  type PeerSpec,
  planDevice,
  WireGuardError,
} from './index.ts';
import { keyBytes, keyText } from './key.codec.ts';
import { formatSet, parseState, readErrno } from './uapi.codec.ts';

const keys = Array.from({ length: 6 }, (_, index) => keyText(new Uint8Array(32).fill(index + 1)));
const prefixes = ['10.0.0.0/8', '10.1.0.0/16', '192.0.2.0/24', 'fd00::/64', '::/0', '0.0.0.0/0'];

/** Peers of whom no two have the same prefix. */
const peersArbitrary = fc
  .tuple(
    fc.subarray(keys),
    fc.array(fc.nat(5), { minLength: prefixes.length, maxLength: prefixes.length }),
    fc.array(fc.option(fc.constantFrom('192.0.2.1:51820', '[2001:db8::1]:51821'), { nil: undefined }), {
      minLength: 6,
      maxLength: 6,
    }),
    fc.array(fc.constantFrom(0, 25), { minLength: 6, maxLength: 6 }),
  )
  .map(([chosen, owner, endpoints, keepalives]): PeerSpec[] =>
    chosen.map((publicKey, index) => ({
      publicKey,
      ...(endpoints[index] !== undefined && { endpoint: endpoints[index] }),
      persistentKeepaliveSeconds: keepalives[index] ?? 0,
      allowedIps: prefixes.filter((_, prefix) => owner[prefix] === index),
    })),
  );

const stateOf = (peers: readonly PeerSpec[]): DeviceState => ({
  publicKey: keys[0] ?? '',
  listenPort: 51820,
  fwmark: 0,
  peers: peers.map((peer) => ({
    ...peer,
    persistentKeepaliveSeconds: peer.persistentKeepaliveSeconds ?? 0,
    rxBytes: 0,
    txBytes: 0,
    hasPresharedKey: false,
  })),
});
const specOf = (peers: readonly PeerSpec[]): DeviceSpec => ({ privateKey: keys[1] ?? '', listenPort: 51820, peers });
const plan = (state: DeviceState, spec: DeviceSpec) => planDevice(state, spec, keys[0] ?? '');

const shape = (peers: readonly { publicKey: string; allowedIps: readonly string[] }[]) =>
  Object.fromEntries(peers.map(({ publicKey, allowedIps }) => [publicKey, [...allowedIps].sort()]));

describe('the diff of a device', () => {
  test('leads to what is wanted, and then there is nothing to do', () => {
    fc.assert(
      fc.property(peersArbitrary, peersArbitrary, (now, then) => {
        const change = plan(stateOf(now), specOf(then));
        const after = change ? afterChange(stateOf(now), change) : stateOf(now);
        expect(shape(after.peers)).toEqual(shape(then));
        expect(plan(after, specOf(then))).toBeUndefined();
      }),
    );
  });

  test('leaves no prefix without a peer that has one before and after', () => {
    fc.assert(
      fc.property(peersArbitrary, peersArbitrary, (now, then) => {
        const held = new Set(
          then
            .flatMap(({ allowedIps }) => allowedIps)
            .filter((prefix) => now.some(({ allowedIps }) => allowedIps.includes(prefix))),
        );
        let state = stateOf(now);
        for (const step of plan(state, specOf(then))?.peers ?? []) {
          state = afterChange(state, { peers: [step] });
          const owned = new Set(state.peers.flatMap(({ allowedIps }) => allowedIps));
          expect([...held].filter((prefix) => !owned.has(prefix))).toEqual([]);
        }
      }),
    );
  });

  test('names no peer that is as it should be, and keeps learned endpoints', () => {
    const [one, two] = [keys[2] ?? '', keys[3] ?? ''];
    const state = stateOf([
      { publicKey: one, endpoint: '192.0.2.1:40000', allowedIps: ['10.0.0.0/8'] },
      { publicKey: two, allowedIps: ['fd00::/64'] },
    ]);
    const wanted = specOf([
      { publicKey: one, allowedIps: ['10.0.0.0/8'] },
      { publicKey: two, endpoint: '192.0.2.9:51820', allowedIps: ['fd00::/64'] },
    ]);
    expect(plan(state, wanted)).toEqual({ peers: [{ op: 'update', publicKey: two, endpoint: '192.0.2.9:51820' }] });
  });

  test('moves a prefix by adding it, and removes a peer last', () => {
    const [one, two] = [keys[2] ?? '', keys[3] ?? ''];
    const state = stateOf([
      { publicKey: one, allowedIps: ['10.0.0.0/8'] },
      { publicKey: two, allowedIps: [] },
    ]);
    expect(plan(state, specOf([{ publicKey: two, allowedIps: ['10.0.0.0/8'] }]))).toEqual({
      peers: [
        { op: 'update', publicKey: two, addAllowedIps: ['10.0.0.0/8'] },
        { op: 'remove', publicKey: one },
      ],
    });
  });
});

describe('keys', () => {
  test('are clamped as RFC 7748 says', () => {
    const bytes = keyBytes(generatePrivateKey());
    expect([(bytes[0] ?? 0) & 7, (bytes[31] ?? 0) & 0xc0]).toEqual([0, 64]);
  });

  test('never stand in an error', () => {
    const secret = generatePrivateKey();
    const broken = `${secret.slice(0, -2)}!=`;
    const hex = 'ab'.repeat(32);
    for (const attempt of [
      () => diffDevice(stateOf([]), { privateKey: broken, listenPort: 1, peers: [] }),
      () => formatSet({ privateKey: broken, peers: [] }),
      () => parseState(`private_key=${hex}zz\n\n`),
      () => parseState(`public_key=${hex}\npreshared_key=${hex}\nrx_bytes=${hex}\n\n`),
      () => parseState(`${hex}\n\n`),
    ]) {
      let text = '';
      try {
        attempt();
      } catch (error) {
        text = inspect(error, { depth: 5 });
      }
      expect(text).toContain('WireGuardError');
      expect(text).not.toContain(broken.slice(0, 20));
      expect(text).not.toContain(hex.slice(0, 20));
    }
  });

  test('that are none are refused', () => {
    for (const text of ['', 'AAAA', `${'A'.repeat(43)}=`.slice(1), `${'A'.repeat(42)}B=`, 'A'.repeat(44)])
      expect(isKey(text)).toBe(false);
  });
});

describe('the text protocol', () => {
  test('asks for exactly the changes', () => {
    const key = keys[0] ?? '';
    const text = formatSet({
      listenPort: 51820,
      peers: [
        { op: 'update', publicKey: key, addAllowedIps: ['10.0.0.0/8'] },
        { op: 'remove', publicKey: key },
      ],
    });
    const hex = '01'.repeat(32);
    expect(text).toBe(
      `set=1\nlisten_port=51820\npublic_key=${hex}\nupdate_only=true\nallowed_ip=10.0.0.0/8\npublic_key=${hex}\nremove=true\n\n`,
    );
  });

  test.each(['10.0.0.0/8\nremove=true', '10.0.0.0', 'x/8'])(
    'a prefix like %j is refused: it would be a command',
    (prefix) => {
      expect(() => formatSet({ peers: [{ op: 'add', publicKey: keys[0] ?? '', allowedIps: [prefix] }] })).toThrow(
        WireGuardError,
      );
    },
  );

  test('a peer that sends from port 0 has no endpoint, and the others have theirs', () => {
    const [a = '', b = ''] = keys.map((key) => Buffer.from(key, 'base64').toString('hex'));
    const peerOf = (key: string, endpoint: string): string => `public_key=${key}\nendpoint=${endpoint}\n`;
    const state = `${peerOf(a, '192.0.2.1:0')}${peerOf(b, '[2001:db8::1]:51820')}errno=0\n\n`;
    expect(() => parseState(state)).not.toThrow();
    expect(parseState(state).peers.map(({ endpoint }) => endpoint)).toEqual([undefined, '[2001:db8::1]:51820']);
  });

  test('any answer is read, or refused as malformed', () => {
    const line = fc.oneof(
      fc
        .constantFrom(
          'public_key=',
          'endpoint=',
          'rx_bytes=',
          'allowed_ip=',
          'last_handshake_time_sec=',
          'listen_port=',
          'errno=',
        )
        .chain((key) =>
          fc.oneof(fc.string(), fc.constantFrom('ab'.repeat(32), '1', '192.0.2.1:1')).map((value) => key + value),
        ),
      fc.string(),
    );
    fc.assert(
      fc.property(
        fc.array(line).map((lines) => lines.join('\n')),
        (answer) => {
          for (const read of [parseState, readErrno]) {
            try {
              read(answer);
            } catch (error) {
              expect(error).toMatchObject({ name: 'WireGuardError', reason: 'malformed' });
            }
          }
        },
      ),
    );
  });
});

describe('generic netlink', () => {
  test('reads back what it writes, also when it takes several messages', () => {
    const many = Array.from({ length: 3000 }, (_, index) => `10.${index >> 8}.${index & 255}.0/24`);
    const peers = keys.map((publicKey) => ({
      op: 'add' as const,
      publicKey,
      endpoint: '[2001:db8::1]:51820',
      persistentKeepaliveSeconds: 25,
      allowedIps: many,
    }));
    const messages = encodeChange('wg0', { listenPort: 51820, fwmark: 7, peers });
    expect(messages.length).toBeGreaterThan(6);
    expect(Math.max(...messages.map(({ length }) => length))).toBeLessThan(60_000);
    const joined = joinParts(messages.map((message) => decodeDevice(readAttributes(message))));
    expect(joined).toMatchObject({ listenPort: 51820, fwmark: 7 });
    expect(joined?.peers).toHaveLength(keys.length);
    for (const peer of joined?.peers ?? [])
      expect(peer).toMatchObject({ endpoint: '[2001:db8::1]:51820', persistentKeepaliveSeconds: 25, allowedIps: many });
  });

  test('a list of 1,500 prefixes is replaced by one message, whatever their family: none is without a peer meanwhile', () => {
    const allowedIps = Array.from({ length: 1500 }, (_, index) => `2001:db8:${(index + 1).toString(16)}::/48`);
    const peers = [{ op: 'update' as const, publicKey: keys[0]!, allowedIps }];
    const messages = encodeChange('wg0', { peers });
    expect(messages).toHaveLength(1);
    expect(messages[0]!.length).toBeLessThan(65_535);
    expect(decodeDevice(readAttributes(messages[0]!)).peers).toMatchObject([{ allowedIps }]);
  });

  test('a peer that sends from port 0 has no endpoint', () => {
    const peer = { op: 'add' as const, publicKey: keys[0] ?? '', endpoint: '192.0.2.1:51820', allowedIps: [] };
    const [message = new Uint8Array(0)] = encodeChange('wg0', { peers: [peer] });
    const at = Buffer.from(message).indexOf(Buffer.from([51820 >> 8, 51820 & 0xff, 192, 0, 2, 1]));
    message.fill(0, at, at + 2);
    const [read] = decodeDevice(readAttributes(message))?.peers ?? [];
    expect(read).toMatchObject({ publicKey: keys[0] });
    expect(read).not.toHaveProperty('endpoint');
  });

  test('any bytes are read, or refused', () => {
    const [real = new Uint8Array(0)] = encodeChange('wg0', {
      listenPort: 1,
      peers: [{ op: 'add', publicKey: keys[0] ?? '', endpoint: '192.0.2.1:1', allowedIps: ['10.0.0.0/8'] }],
    });
    const hostile = fc.oneof(
      fc.uint8Array({ maxLength: 100 }),
      fc.tuple(fc.array(fc.tuple(fc.nat(real.length - 1), fc.nat(255)), { maxLength: 4 })).map(([changes]) => {
        const copy = real.slice();
        for (const [at, byte] of changes) copy[at] = byte;
        return copy;
      }),
    );
    fc.assert(
      fc.property(hostile, (bytes) => {
        try {
          decodeDevice(readAttributes(bytes));
        } catch (error) {
          const refused =
            error instanceof NetlinkDecodeError || (error instanceof WireGuardError && error.reason === 'malformed');
          expect(refused).toBe(true);
        }
      }),
      { numRuns: 1000 },
    );
  });
});

describe('endpoints', () => {
  test.each([
    ['192.0.2.1:51820', { address: '192.0.2.1', port: 51820 }],
    ['[2001:DB8::0001]:1', { address: '2001:db8::1', port: 1 }],
  ])('%s is read', (text, parts) => {
    expect(parseEndpoint(text)).toEqual(parts);
  });

  test.each([
    '192.0.2.1',
    '192.0.2.1:0',
    '192.0.2.1:70000',
    '2001:db8::1:51820',
    '[192.0.2.1]:1',
    'host:1',
    '192.0.2.1:1\nremove=true',
    '',
  ])('%j is refused', (text) => {
    expect(() => parseEndpoint(text)).toThrow(WireGuardError);
  });
});
