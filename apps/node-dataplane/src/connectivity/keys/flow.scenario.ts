import { createSocket, type Socket } from 'node:dgram';
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { openUdp } from '@unbounded/netlink';

/** Packets with numbers between two pods in both directions, in a thread of its own, so that the test may block. */

export interface FlowSettings {
  readonly ends: readonly { readonly address: string; readonly netnsFd: number }[];
  readonly port: number;
  readonly everyMs: number;
  /** Of packets: it goes on until as many were sent, also after it is told to stop. */
  readonly least?: number;
}

/** Of each direction. */
export interface FlowCount {
  readonly from: string;
  readonly sent: number;
  /** Packets that did not arrive, the first of them: number, and when it was sent (RFC 3339). */
  readonly lost: readonly string[];
  readonly lostCount: number;
  /** From the sending of the last packet that arrived before a loss to that of the first one after it, milliseconds; 0: no loss. */
  readonly longestGapMs: number;
}

const SETTLE_MS = 500;
/** The kernel gives what its limit allows. */
const RECEIVE_BUFFER_BYTES = 1 << 22;
const LARGEST_DEBT_MS = 40;
const { ends, port, everyMs, least = 0 } = workerData as FlowSettings;
const messages = parentPort as MessagePort;

const arrived = ends.map(() => new Set<number>());
const sentAtMs: number[] = [];
const sockets = ends.map(({ address, netnsFd }, index): Socket => {
  const socket = createSocket('udp4');
  socket.bind({ fd: openUdp({ address, port, netnsFd }) });
  socket.setRecvBufferSize(RECEIVE_BUFFER_BYTES);
  socket.on('message', (bytes: Buffer) => arrived[index]!.add(bytes.readUInt32BE(0)));
  socket.on('error', () => undefined); // what does not arrive is counted
  return socket;
});

const send = (): void => {
  const bytes = Buffer.alloc(200);
  bytes.writeUInt32BE(sentAtMs.push(Date.now()) - 1, 0);
  for (const [index, socket] of sockets.entries()) socket.send(bytes, port, ends[1 - index]!.address, () => undefined);
};

const longestGap = (seen: ReadonlySet<number>): number => {
  let [longest, lastMs, lost] = [0, sentAtMs[0] ?? 0, 0];
  for (const [number, ms] of sentAtMs.entries()) {
    if (!seen.has(number)) lost++;
    if (lost > 0) longest = Math.max(longest, ms - lastMs);
    if (seen.has(number)) [lastMs, lost] = [ms, 0];
  }
  return longest;
};

const count = (): FlowCount[] =>
  ends.map(({ address }, index) => {
    const lost = sentAtMs.flatMap((ms, number) =>
      arrived[1 - index]!.has(number) ? [] : [`${number} ${new Date(ms).toISOString()}`],
    );
    return {
      from: address,
      sent: sentAtMs.length,
      lost: lost.slice(0, 20),
      lostCount: lost.length,
      longestGapMs: longestGap(arrived[1 - index]!),
    };
  });

const end = (): void => {
  clearInterval(sending);
  setTimeout(() => {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, no window
    messages.postMessage(count());
    for (const socket of sockets) socket.close();
    messages.close();
  }, SETTLE_MS);
};

let due = performance.now();
let isStopped = false;
const sending = setInterval(() => {
  // A thread that was held up does not send all it owes at once: the queues on the way would be too short for that.
  for (due = Math.max(due, performance.now() - LARGEST_DEBT_MS); performance.now() >= due; due += everyMs) send();
  if (isStopped && sentAtMs.length >= least) end();
}, 1);

messages.on('message', (message: 'stop') => {
  isStopped ||= message === 'stop';
});
