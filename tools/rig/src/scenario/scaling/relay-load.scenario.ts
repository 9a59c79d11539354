import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { encodeData, encodeRegister } from '@unbounded/relay-protocol';
import { keyOf, TestPeer } from '@unbounded/relay-testing/peer';

/** HOST PORT: clients of a relay that serves whoever asks, in pairs that send each other as much as it takes, until they are ended. */

const [, , host = '', port = ''] = process.argv;
const PAIRS = 4;
const PAYLOAD = Buffer.alloc(1300, 'x');
const FRAMES_AT_ONCE = 32;

const join = async (name: string): Promise<TestPeer> => {
  const peer = new TestPeer(connect({ host, port: Number(port), noDelay: true }));
  await once(peer.socket, 'connect');
  peer.send(encodeRegister(keyOf(name)));
  return peer;
};

const pump = async (from: TestPeer, to: string): Promise<void> => {
  const batch = Buffer.concat(Array.from({ length: FRAMES_AT_ONCE }, () => encodeData(keyOf(to), PAYLOAD)));
  while (!from.closed) {
    from.frames.length = 0;
    if (!from.socket.write(batch)) await Promise.race([once(from.socket, 'drain'), delay(100)]);
    else await delay(1);
  }
};

/** A replica that ends closes its connections: the pair goes on at another one. */
const keepPair = async (number: number): Promise<never> => {
  for (;;) {
    const names = [`a${number}`, `b${number}`] as const;
    try {
      const [a, b] = [await join(names[0]), await join(names[1])];
      await Promise.race([pump(a, names[1]), pump(b, names[0])]);
      a.socket.destroy();
      b.socket.destroy();
    } catch {
      // it is away for a moment
    }
    await delay(200);
  }
};

await Promise.all(Array.from({ length: PAIRS }, (_, number) => keepPair(number)));
