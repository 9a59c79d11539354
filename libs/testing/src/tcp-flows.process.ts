import { connect, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * TCP connections in the network of the process (tcp-flows.ts starts it): ADDRESS PORT COUNT. It answers as line-server.ts expects: `sources`
 * by the addresses that the server saw, `alive` by how many connections answered.
 */

/** Longer than the kernel waits, after an outage of some seconds, before it sends a segment again. */
const LATE_MS = 20_000;

const linesOf = (socket: Socket): AsyncIterator<string> => createInterface({ input: socket })[Symbol.asyncIterator]();

const answer = (value: unknown): void => void process.stdout.write(`ok ${JSON.stringify(value)}\n`);

const open = (host: string, port: number): Promise<{ socket: Socket; lines: AsyncIterator<string>; source: string }> =>
  new Promise((resolve, reject) => {
    const socket = connect({ host, port });
    const lines = linesOf(socket);
    socket.once('error', reject);
    void lines.next().then(({ value }) => resolve({ socket, lines, source: String(value) }), reject);
  });

const flows = async (host: string, port: number, count: number): Promise<void> => {
  const opening = Array.from({ length: count }, () =>
    Promise.race([open(host, port).catch(() => undefined), sleep(LATE_MS, undefined, { ref: false })]),
  );
  const all = (await Promise.all(opening)).filter((connection) => connection !== undefined);
  for (const { socket } of all) socket.on('error', () => undefined); // a connection that ended answers nothing
  let round = 0;
  for await (const what of createInterface({ input: process.stdin })) {
    if (what === 'sources') {
      answer(all.map(({ source }) => source));
      continue;
    }
    const word = `round ${round++}`;
    const answers = all.map(async ({ socket, lines }) => {
      socket.write(`${word}\n`);
      const late = sleep(LATE_MS, undefined, { ref: false });
      const line = await Promise.race([lines.next().catch(() => undefined), late]);
      return line?.value === word;
    });
    answer((await Promise.all(answers)).filter(Boolean).length);
  }
  process.exit(0);
};

const [host, port, count] = process.argv.slice(2);
await flows(host!, Number(port), Number(count));
