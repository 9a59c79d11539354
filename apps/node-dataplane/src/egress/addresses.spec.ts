import type { LinkAddress, RouteSocket } from '@unbounded/netlink';
import { expect, test } from 'vitest';
import { ensureAddresses } from './addresses.ts';

/** An address that the kernel does not give up. */

const OURS = { link: 2, address: '192.0.2.1/32', deprecated: true, protocol: 118 };
const free = { stateOf: () => 'free' as const };

const socket = (present: readonly LinkAddress[], refused: readonly string[] = []): RouteSocket =>
  ({
    links: { list: async () => [{ index: 2, name: 'eth0' }] },
    addresses: {
      list: async () => present,
      create: async () => undefined,
      delete: async ({ address }: LinkAddress) => {
        if (refused.includes(address)) throw new Error('not permitted');
      },
    },
  }) as unknown as RouteSocket;

test('one that cannot be taken off is a problem, stays, and keeps no other from being taken', async () => {
  const net = socket([OURS], [OURS.address]);
  const outcome = await ensureAddresses(net, [{ address: '192.0.2.2', device: 'eth0' }], new Set(['192.0.2.1']), free);
  expect(outcome).toMatchObject({ held: new Set(['192.0.2.2']), staying: new Set(['192.0.2.1']) });
  expect(outcome.problems).toEqual([
    { reason: 'EgressAddressFailed', message: expect.stringContaining('192.0.2.1: cannot take it off') },
  ]);
});

test('where the kernel does not say who made an address, a deprecated one that the node was given is ours', async () => {
  const former = new Set(['192.0.2.1']);
  const { protocol, ...unsaid } = OURS;
  const net = socket([unsaid], [OURS.address]);
  expect((await ensureAddresses(net, [], former, free)).staying).toEqual(former);
  expect((await ensureAddresses(net, [], new Set(), free)).staying).toEqual(new Set());
  const speaking = socket([unsaid, { link: 1, address: '127.0.0.1/8', protocol }], [OURS.address]);
  expect((await ensureAddresses(speaking, [], former, free)).staying).toEqual(new Set());
});
