import { join } from 'node:path';
import { startLineServer } from './line-server.ts';

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

/** Twice what the process starts within on a machine that is busy, and after that waits for connections or answers. */
const LONGEST_MS = 80_000;

/** Opens connections, and keeps them. */
export const openTcpFlows = async (
  within: readonly string[],
  { host, port, count }: { readonly host: string; readonly port: number; readonly count: number },
): Promise<TcpFlows> => {
  const node = [join(import.meta.dirname, '../../../tools/node'), join(import.meta.dirname, 'tcp-flows.process.ts')];
  const [program, ...args] = [...within, ...node, host, String(port), String(count)];
  const client = startLineServer(program, args, { timeoutMs: LONGEST_MS });
  const sources = JSON.parse(await client.ask('sources')) as string[];
  return { sources, alive: async () => Number(await client.ask('alive')), end: client.end };
};
