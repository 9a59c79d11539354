import { once } from 'node:events';
import { createSocket } from 'node:dgram';
import { expect, test } from 'vitest';
import { createNetns, createRouteSocket, openUdp } from '../src/index.ts';

const adopted = (fd: number, type: 'udp4' | 'udp6') => createSocket(type).bind({ fd });

test.each([
  ['127.0.0.1', 'udp4'],
  ['::1', 'udp6'],
] as const)('a socket at %s in another namespace sends and hears there', async (address, type) => {
  using netns = createNetns();
  await using net = createRouteSocket({ netnsFd: netns.fd });
  const loopback = (await net.links.list()).find(({ name }) => name === 'lo')!;
  await net.links.modify(loopback.index, { up: true });
  const hears = adopted(openUdp({ address, port: 9997, netnsFd: netns.fd }), type);
  const sends = adopted(openUdp({ address, port: 0, netnsFd: netns.fd }), type);
  try {
    const heard = once(hears, 'message') as Promise<[Buffer]>;
    sends.send('hello', 9997, address);
    expect(String((await heard)[0])).toBe('hello');
  } finally {
    hears.close();
    sends.close();
  }
});

test('a socket may be bound to an address that the node does not have yet', () => {
  using netns = createNetns();
  expect(openUdp({ address: '192.0.2.1', port: 9997, netnsFd: netns.fd })).toBeGreaterThan(2);
  expect(openUdp({ address: '2001:db8::1', port: 9997, netnsFd: netns.fd })).toBeGreaterThan(2);
  expect(() => openUdp({ address: '192.0.2.1', port: 9997, netnsFd: netns.fd })).toThrow('EADDRINUSE');
});

test('sockets that share a port are bound to it together, and with none that does not', () => {
  using netns = createNetns();
  const options = { address: '192.0.2.1', port: 9997, netnsFd: netns.fd };
  const sharing = { ...options, sharesPort: true, sendBufferBytes: 64 << 20 }; // more than wmem_max lets others have
  const first = createSocket('udp4').bind({ fd: openUdp(sharing) });
  const second = createSocket('udp4').bind({ fd: openUdp(sharing) });
  try {
    expect(first.getSendBufferSize()).toBe(128 << 20); // the kernel counts its own overhead too
    expect(() => openUdp(options)).toThrow('EADDRINUSE');
  } finally {
    first.close();
    second.close();
  }
});

test('what is no address is refused', () => {
  expect(() => openUdp({ address: 'localhost', port: 1 })).toThrow(TypeError);
  expect(() => openUdp({ address: '192.0.2.1', port: 70_000 })).toThrow('port must be an integer within 0..65535');
});
