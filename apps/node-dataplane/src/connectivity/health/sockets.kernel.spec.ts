import { once } from 'node:events';
import { createSocket } from 'node:dgram';
import { setImmediate as immediate, setTimeout as delay } from 'node:timers/promises';
import { openUdp } from '@unbounded/netlink';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { makeNodes, PORT, type TestNode, type TestNodes } from './nodes.scenario.ts';
import { createProbeSockets } from './sockets.ts';

let world: TestNodes;
beforeEach(() => void (world = makeNodes('a', 'b')));
afterEach(() => world[Symbol.asyncDispose]());

/** The kernel keeps so much for each of so many addresses that nobody has, until it gives them up. */
const [NOBODY, EACH] = [400, 100];
const BYTES = 1300;

test('what waits for nodes that are off, however much, delays nothing that others are sent', async () => {
  const [a, b] = world.nodes as [TestNode, TestNode];
  a.run('ip', 'addr', 'add', '10.10.0.1/16', 'dev', 'wire');
  // By default it gives up after three seconds, which a busy machine needs for the sending alone.
  a.run('ip', 'ntable', 'change', 'name', 'arp_cache', 'dev', 'wire', 'retrans', '60000');
  const heard = createSocket('udp4').bind({
    fd: openUdp({ address: b.addresses[4], port: PORT, netnsFd: b.netns.fd }),
  });
  const sockets = createProbeSockets({ port: PORT, netnsFd: a.netns.fd, onMessage: () => undefined });
  const address = a.addresses[4];
  const faults: string[] = [];
  const send = (lane: 'answering' | 'silent', to: string, bytes: Uint8Array): void =>
    sockets.send({ address, lane }, { address: to, port: PORT }, bytes, (fault) => faults.push(fault));
  try {
    sockets.ensure(new Map([[address, 4]]));
    const silent = Buffer.alloc(BYTES);
    for (let round = 0; round < EACH; round++)
      for (let number = 0; number < NOBODY; number++)
        send('silent', `10.10.${1 + (number >> 8)}.${number & 255}`, silent);
    expect(faults).toContain('EAGAIN'); // there is no room left
    const message = once(heard, 'message') as Promise<[Buffer]>;
    send('answering', b.addresses[4], Buffer.from('hello'));
    // Timers run before sockets are read: what has come counts, however late this process is.
    const late = delay(1000).then(() => immediate([undefined] as const));
    const [bytes] = await Promise.race([message, late]);
    expect(String(bytes)).toBe('hello');
  } finally {
    sockets.close();
    heard.close();
  }
});
