import { readFileSync } from 'node:fs';
import { createServer, request } from 'node:https';

/**
 * Stands before an API server: answers are passed on at once, and what a watch tells is late.
 * PORT SERVER_PORT LATE_MS CERTIFICATE KEY AUTHORITY
 */

const [port, serverPort, lateMs, certificate = '', key = '', authority = ''] = process.argv.slice(2);
const ca = readFileSync(authority);

createServer({ cert: readFileSync(certificate), key: readFileSync(key) }, (incoming, outgoing) => {
  const { method, url: path = '/', headers } = incoming;
  const isWatch = new URL(path, 'https://server').searchParams.has('watch');
  if (isWatch) console.log(`late: ${path}`);
  const late = (act: () => void): void => void setTimeout(act, isWatch ? Number(lateMs) : 0);
  const upstream = request({ host: '127.0.0.1', port: serverPort, ca, method, path, headers }, (answer) => {
    outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
    outgoing.flushHeaders();
    answer.on('data', (chunk: Buffer) => late(() => outgoing.write(chunk)));
    answer.on('end', () => late(() => outgoing.end()));
    answer.on('error', () => outgoing.destroy());
  });
  upstream.on('error', () => outgoing.destroy());
  outgoing.on('close', () => upstream.destroy());
  incoming.pipe(upstream);
}).listen(Number(port), () => console.log('listening'));
