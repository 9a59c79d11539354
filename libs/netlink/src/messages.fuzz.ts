import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import type { FuzzTarget } from '@unbounded/testing';
import { createAnswersDecoder, decodeConnection } from './conntrack.codec.ts';
import { decodeAddress } from './link-address.codec.ts';
import { decodeLink } from './link.codec.ts';
import { NetlinkDecodeError, readMessages } from './message.codec.ts';
import { decodeEvent } from './monitor.ts';
import { decodeNetconf } from './netconf.codec.ts';
import { decodeNeighbour } from './neighbour.codec.ts';
import { decodeNexthop } from './nexthop.codec.ts';
import { decodeRoute } from './route.codec.ts';
import { decodeRule } from './rule.codec.ts';
import { decodeFilter, decodeQdisc } from './traffic-control.codec.ts';

/**
 * What a netlink socket receives. The kernel is trusted, but its messages hold what others chose (names of devices, aliases,
 * attributes of newer kernels). Input: a byte for the decoder, then one message's body; 255: a whole batch of messages.
 */
const decoders: readonly ((body: Uint8Array) => unknown)[] = [
  decodeLink,
  decodeAddress,
  decodeRoute,
  decodeRule,
  decodeNeighbour,
  decodeNexthop,
  decodeQdisc,
  decodeFilter,
  decodeNetconf,
  decodeConnection,
  (body) => createAnswersDecoder(() => true)(body),
];

const refused = (read: () => unknown): void => {
  try {
    read();
  } catch (error) {
    if (!(error instanceof NetlinkDecodeError)) throw error;
  }
};

const run = (input: Uint8Array): void => {
  const body = input.subarray(1);
  const which = input[0] ?? 0;
  if (which !== 255) {
    refused(() => decoders[which % decoders.length]!(body));
    return;
  }
  let bytes = 0;
  refused(() =>
    readMessages(body, (message) => {
      bytes += 16 + message.body.length;
      refused(() => decodeEvent(message));
    }),
  );
  assert.ok(bytes <= body.length, 'messages overlap');
};

/** What iproute2 sent, recorded by test/record.sh; each kind with the decoder of its answers. */
const recorded = JSON.parse(readFileSync(new URL('../testdata/golden.json', import.meta.url), 'utf8')) as Record<
  string,
  string
>;
const KINDS = ['link', 'address', 'route', 'rule', 'neighbour', 'nexthop', 'clsact'];

export const target: FuzzTarget = {
  run,
  seeds: Object.entries(recorded).flatMap(([name, hex]) => {
    const kind = KINDS.indexOf(name.split(' ')[0] ?? '');
    return kind < 0 ? [] : [Uint8Array.from([kind, ...Buffer.from(hex, 'hex')])];
  }),
  maxBytes: 512,
};
