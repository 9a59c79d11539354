/**
 * Passes connections from a Unix socket, which programs in any network namespace reach, to a TCP address in this process's own, until its
 * standard input ends. Usage: pass-connections.ts SOCKET HOST PORT
 */
import { rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { pipeline } from 'node:stream';

const [socket = '', host = '', port = ''] = process.argv.slice(2);
rmSync(socket, { force: true });
const server = createServer((client) => {
  const target = connect(Number(port), host);
  // Either end may break off: the other one goes as well.
  pipeline(client, target, client, () => undefined);
});
server.listen(socket, () => console.log('listening'));
process.stdin.on('end', () => process.exit()).resume();
