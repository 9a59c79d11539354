import { execFileSync } from 'node:child_process';
import { createConntrack, createNetns, type Conntrack, type Netns } from '@unbounded/netlink';
import { afterEach, beforeEach, expect, test } from 'vitest';

let ns: Netns;
let conntrack: Conntrack;
const run = (...argv: string[]): string => execFileSync('nsenter', [`--net=${ns.path}`, ...argv], { encoding: 'utf8' });
beforeEach(() => {
  ns = createNetns();
  run(
    'sh',
    '-c',
    'ip link set lo up; ip addr add 192.0.2.1/32 dev lo; ip addr add 192.0.2.2/32 dev lo; ip addr add 2001:db8::1/128 dev lo nodad',
  );
  run('nft', 'add table inet t');
  run('nft', 'add chain inet t c { type nat hook postrouting priority srcnat; }');
  run('nft', 'add rule inet t c ip daddr 192.0.2.9 snat ip to 192.0.2.2');
  run('nft', 'add chain inet t tracked { type filter hook output priority 0; }');
  run('nft', 'add rule inet t tracked ct state new counter'); // of both families
  run('ip', 'route', 'add', '192.0.2.9/32', 'dev', 'lo');
  conntrack = createConntrack({ netnsFd: ns.fd });
});
afterEach(() => {
  conntrack.close();
  ns.close();
});
const send = (from: string, to: string): string =>
  run(
    'perl',
    '-e',
    'use IO::Socket::IP; IO::Socket::IP->new(PeerHost => $ARGV[1], PeerPort => 7, LocalHost => $ARGV[0], Proto => "udp", Type => SOCK_DGRAM)->send("x")',
    from,
    to,
  );

test('connections of an address are listed with what it was translated to, and those of others are not', async () => {
  send('192.0.2.1', '192.0.2.9');
  send('192.0.2.1', '127.0.0.1');
  send('127.0.0.1', '127.0.0.1');
  send('2001:db8::1', '2001:db8::1');
  const found = await conntrack.listFrom(['192.0.2.1']);
  expect(
    new Set(found.map(({ protocol, original, reply }) => `${protocol} ${original.destination} ${reply.destination}`)),
  ).toEqual(new Set(['17 127.0.0.1 192.0.2.1', '17 192.0.2.9 192.0.2.2']));
  expect((await conntrack.listFrom(['2001:db8::1'])).map(({ family, reply }) => [family, reply.destination])).toEqual([
    [6, '2001:db8::1'],
  ]);
  expect(await conntrack.listFrom(['192.0.2.77'])).toEqual([]);
  const many = ['192.0.2.1', '2001:db8::1', ...[71, 72, 73, 74].map((host) => `192.0.2.${host}`)];
  expect(await conntrack.listFrom(many)).toHaveLength(3);
});

test('connections are counted by who answers, at the addresses that they were translated to', async () => {
  for (const to of ['192.0.2.9', '192.0.2.9', '127.0.0.1']) send('192.0.2.1', to);
  send('2001:db8::1', '2001:db8::1');
  const counted = async (...addresses: string[]): Promise<string[]> =>
    [...(await conntrack.countAnsweredAt(addresses))]
      .map(([{ protocol, address, peer, peerPort }, count]) => `${protocol} ${address} ${peer} ${peerPort}: ${count}`)
      .sort();
  expect(await counted('192.0.2.2')).toEqual(['17 192.0.2.2 192.0.2.9 7: 2']);
  expect(await counted('192.0.2.1', '2001:db8::1')).toEqual([
    '17 192.0.2.1 127.0.0.1 7: 1',
    '17 2001:db8::1 2001:db8::1 7: 1',
  ]);
  const many = [71, 72, 73, 74].map((host) => `192.0.2.${host}`);
  expect(await counted('192.0.2.2', ...many)).toEqual(['17 192.0.2.2 192.0.2.9 7: 2']);
  expect(await counted('192.0.2.77')).toEqual([]);
});

test('one that is deleted is gone, the others stay, and a second time is fine', async () => {
  send('192.0.2.1', '192.0.2.9');
  send('192.0.2.1', '127.0.0.1');
  const one = (await conntrack.listFrom(['192.0.2.1'])).find(({ reply }) => reply.destination === '192.0.2.2');
  await conntrack.delete(one!);
  await conntrack.delete(one!);
  expect((await conntrack.listFrom(['192.0.2.1'])).map(({ original }) => original.destination)).toEqual(['127.0.0.1']);
});
