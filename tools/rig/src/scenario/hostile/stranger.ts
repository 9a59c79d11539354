/**
 * What somebody without credentials does at an open port, as a process in the stranger's network namespace. Prints what came of
 * it; status 1 and a message when it had success.
 *
 * Usage: stranger.ts relay HOST PORT NAME KEY_OF_A_MEMBER | tcp HOST PORT | udp HOST PORT | closed HOST PORT
 */
import { randomBytes } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { setTimeout as delay } from 'node:timers/promises';
import { strangerAttempts } from '@unbounded/relay-testing/strangers';

const ANSWER_MS = 3000;
const HELD = 100;

const NONE = new Uint8Array();

/** Of a relay that shows the port of clients and no other. */
const atRelay = async (host: string, port: number, [name = '', key = '']: readonly string[]): Promise<string> => {
  const attempt = strangerAttempts.find((candidate) => candidate.name === name);
  if (!attempt) throw new Error(`there is no attempt "${name}"`);
  const memberKey = Buffer.from(key, 'base64');
  await attempt.run({ host, port, linkPort: 0, healthPort: 0, memberKey, recorded: { hello: NONE, proof: NONE } }, 0);
  return 'cut, and nothing was served';
};

/** What comes back to these bytes, whatever ends the connection. */
const answerOn = async (socket: Socket, bytes: Uint8Array): Promise<Buffer> => {
  const chunks: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  socket.on('error', () => undefined);
  socket.write(bytes);
  await Promise.race([new Promise((resolve) => socket.on('close', resolve)), delay(ANSWER_MS)]);
  socket.destroy();
  return Buffer.concat(chunks);
};

/** The port serves these without credentials, by design; whoever asks for more is refused. */
const PUBLIC_PATHS = ['/metrics', '/healthz', '/livez', '/readyz', '/version'];
const ASKED = [...PUBLIC_PATHS, '/', '/pods', '/exec/default/probe/probe', '/api/v1/secrets', '/../../etc/passwd'];

const request = (path: string, method = 'GET'): Buffer =>
  Buffer.from(`${method} ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);

/** By HTTP, in the clear and over TLS without a certificate of its own. @throws Error when something is served that is not public */
const asks = async (host: string, port: number): Promise<string> => {
  const statuses: string[] = [];
  for (const secure of [false, true]) {
    for (const [path, method] of [...ASKED.map((each) => [each, 'GET'] as const), ['/metrics', 'POST'] as const]) {
      const socket = secure ? connectTls({ host, port, rejectUnauthorized: false }) : connect({ host, port });
      const answer = (await answerOn(socket, request(path, method))).toString('latin1');
      const status = /^HTTP\/1\.[01] (\d{3})/.exec(answer)?.[1];
      if (status === undefined) {
        if (path === ASKED[0]) break; // it speaks something else
        continue;
      }
      statuses.push(`${method} ${path} ${status}`);
      const isPublic = method === 'GET' && PUBLIC_PATHS.includes(path);
      if (!isPublic && Number(status) < 300) throw new Error(`${method} ${path} was answered with ${status}`);
    }
  }
  return statuses.length === 0 ? 'no HTTP' : statuses.join(', ');
};

const atTcpPort = async (host: string, port: number): Promise<string> => {
  const answered = await asks(host, port);
  await answerOn(connect({ host, port }), randomBytes(1 << 20));
  const openings = [
    Buffer.alloc(0),
    Buffer.from('GET /metrics HTTP/1.1\r\nX: '),
    Buffer.from('1603010200010001fc0303', 'hex'),
  ];
  for (const opening of openings) {
    const sockets = Array.from({ length: HELD }, () => connect({ host, port }));
    for (const socket of sockets) {
      socket.on('error', () => undefined);
      if (opening.length > 0) socket.write(opening);
    }
    await delay(500);
    for (const socket of sockets) socket.destroy();
  }
  return `${openings.length * HELD} connections held; ${answered}`;
};

const atUdpPort = async (host: string, port: number): Promise<string> => {
  const socket = createSocket(host.includes(':') ? 'udp6' : 'udp4');
  let answers = 0;
  socket.on('message', () => void (answers += 1));
  socket.on('error', () => undefined);
  const first = [Buffer.alloc(0), Buffer.from([1, 0, 0, 0]), Buffer.from([4, 0, 0, 0]), Buffer.alloc(1, 0x80)];
  const sizes = [1, 8, 32, 60, 92, 148, 500, 1400];
  for (let round = 0; round < 25; round += 1) {
    for (const [index, size] of sizes.entries()) {
      const sent = Promise.withResolvers<void>();
      socket.send(Buffer.concat([first[(round + index) % first.length]!, randomBytes(size)]), port, host, () =>
        sent.resolve(),
      );
      await sent.promise;
    }
    await delay(10);
  }
  await delay(ANSWER_MS / 3);
  socket.close();
  await once(socket, 'close');
  if (answers > 0) throw new Error(`${answers} datagrams were answered`);
  return `${25 * sizes.length} datagrams, no answer`;
};

/** Of a port that is not for strangers. */
const atClosedPort = async (host: string, port: number): Promise<string> => {
  const socket = connect({ host, port });
  const opened = await Promise.race([
    once(socket, 'connect').then(
      () => true,
      () => false,
    ),
    delay(ANSWER_MS, false),
  ]);
  socket.destroy();
  if (opened) throw new Error('it is open');
  return 'closed';
};

const atPort = { tcp: atTcpPort, udp: atUdpPort, closed: atClosedPort } as const;

const [kind, host = '', port = '', ...more] = process.argv.slice(2);
try {
  if (kind === 'relay') console.log(await atRelay(host, Number(port), more));
  else console.log(await atPort[kind as keyof typeof atPort](host, Number(port)));
} catch (error) {
  console.error((error as Error).message);
  process.exitCode = 1;
}
process.exit();
