import { encodeData } from '@unbounded/relay-protocol';

import { join, keyOf, type TestPeer } from '@unbounded/relay-testing/peer';
import { startRelay } from './test-relay.ts';

/**
 * 500 registered clients that do not read, flooded until the relay's memory for queues is used up; then members stop reading for
 * a moment, while less comes for each than its share. To be run where TCP buffers are small. Prints what came of it.
 */

const SLOW = 500;
const MEMBERS = 40;
const FRAME = Buffer.alloc(1400, 4);
/** 115 KB for each member, of which its stream and the kernel take some 93: an equal share of the relay’s memory is 62 KB. */
const FRAMES = 80;
const MEMORY_BYTES = 32 * 1024 * 1024;

const relay = await startRelay({
  memoryBytes: MEMORY_BYTES,
  maxConnectionsPerAddress: 2000,
  newConnectionsPerSecond: 2000,
  writeTimeoutMs: 600_000,
});
const slow: TestPeer[] = [];
for (let index = 0; index < SLOW; index++) {
  const peer = await join(relay.port, keyOf(`slow ${index}`));
  peer.socket.pause();
  slow.push(peer);
}
const FLOODERS = 25;
const flooders = await Promise.all(
  Array.from({ length: FLOODERS }, (_, index) => join(relay.port, keyOf(`flooder ${index}`))),
);
const members = await Promise.all(
  Array.from({ length: MEMBERS }, (_, index) => join(relay.port, keyOf(`member ${index}`))),
);
const sender = await join(relay.port, keyOf('sender'));

let most = 0;
const bursts = slow.map((_, index) =>
  Buffer.concat(Array.from({ length: 20 }, () => encodeData(keyOf(`slow ${index}`), FRAME))),
);
const flood = setInterval(() => {
  most = Math.max(most, relay.state.heldBytes);
  for (const [index, { socket }] of flooders.entries())
    if (socket.writableLength < 1_000_000) for (let to = index; to < SLOW; to += FLOODERS) socket.write(bursts[to]!);
}, 20);
await sender.until('the memory is used up', () => relay.state.tallies.dropped.slow > 1000, 60_000);

for (const { socket } of members) socket.pause();
const round = members.map((_, index) => encodeData(keyOf(`member ${index}`), FRAME));
// One after the other: what comes at once would be one write, which waits in no queue.
for (let count = 0; count < FRAMES; count++) {
  sender.send(...round, encodeData(keyOf('sender'), FRAME));
  await sender.next();
}
const heldBytes = relay.state.heldBytes;
for (const { socket } of members) socket.resume();
const got = (): number => members.reduce((sum, { frames }) => sum + frames.length, 0);
await sender.until('nothing more comes', () => got() === MEMBERS * FRAMES, 5000).catch(() => {});
clearInterval(flood);
const { dropped, closed } = relay.state.tallies;
console.log(
  JSON.stringify({ got: got(), of: MEMBERS * FRAMES, dropped: dropped.slow, ended: closed.slow, heldBytes, most }),
);
process.exit(0);
