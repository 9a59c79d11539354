import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { startLineServer } from './line-server.ts';
import type { FlowsTold } from './tcp-flows.process.ts';

/** TCP connections that stay, for tests of what interrupts them. */

export interface TcpServer {
  end(): void;
}
export interface TcpFlows {
  /** The client's address of each connection that was established within 20 s, as the server sees it. */
  readonly sources: readonly string[];
  /** How many still bring a line there and back, within 20 s. */
  alive(): Promise<number>;
  end(): void;
}

const start = (within: readonly string[], ...args: readonly string[]) => {
  const [program, ...argv] = [
    ...within,
    join(import.meta.dirname, '../../../tools/node'),
    join(import.meta.dirname, 'tcp-flows.process.ts'),
    ...args,
  ];
  const child = spawn(program!, argv, { stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    say: (line: string): void => void child.stdin.write(`${line}\n`),
    async next(): Promise<FlowsTold> {
      const { value, done } = await lines.next();
      if (done) throw new Error(`tcp-flows ${args.join(' ')} ended`);
      return JSON.parse(value) as FlowsTold;
    },
    end: () => void child.stdin.end(), // what enters the network may be a process of its own
  };
};

/** The client's address, then what it sends. Perl takes an eighth of the processor time that Node takes to start. */
const SERVE = `use Socket qw(:all); $SIG{PIPE} = "IGNORE"; $| = 1;
socket(my $server, AF_INET6, SOCK_STREAM, 6) or die $!;
setsockopt($server, SOL_SOCKET, SO_REUSEADDR, 1); setsockopt($server, IPPROTO_IPV6, IPV6_V6ONLY, 0);
bind($server, pack_sockaddr_in6($ARGV[0], IN6ADDR_ANY)) or die $!; listen($server, 511) or die $!;
my %clients;
for (;;) {
  my $ready = ""; vec($ready, $_, 1) = 1 for 0, fileno($server), keys %clients;
  select($ready, undef, undef, undef) > 0 or next;
  if (vec($ready, 0, 1)) { sysread(STDIN, my $line, 4096) or exit; print "ok\n"; }
  for my $fd (keys %clients) {
    vec($ready, $fd, 1) or next;
    my $length = sysread($clients{$fd}, my $bytes, 65536);
    if ($length) { syswrite($clients{$fd}, $bytes) } else { delete $clients{$fd} }
  }
  if (vec($ready, fileno($server), 1) and my $peer = accept(my $client, $server)) {
    my $address = inet_ntop(AF_INET6, (unpack_sockaddr_in6($peer))[1]); $address =~ s/^::ffff://;
    syswrite($client, "$address\n"); $clients{fileno($client)} = $client;
  }
}`;

/**
 * Echoes in both families.
 * @param within the command that enters a network, before the program: `['nsenter', '--net=…']`
 */
export const serveTcp = async (within: readonly string[], port: number): Promise<TcpServer> => {
  const [program, ...args] = [...within, 'perl', '-e', SERVE, String(port)];
  const server = startLineServer(program, args);
  await server.ask('do you listen?');
  return server;
};

/** Opens connections, and keeps them. */
export const openTcpFlows = async (
  within: readonly string[],
  { host, port, count }: { readonly host: string; readonly port: number; readonly count: number },
): Promise<TcpFlows> => {
  const client = start(within, host, String(port), String(count));
  const told = await client.next();
  if (!('sources' in told)) throw new Error(`${JSON.stringify(told)} instead of the sources`);
  return {
    sources: told.sources,
    async alive() {
      client.say('');
      const answer = await client.next();
      if (!('alive' in answer)) throw new Error(`${JSON.stringify(answer)} instead of a number`);
      return answer.alive;
    },
    end: client.end,
  };
};
