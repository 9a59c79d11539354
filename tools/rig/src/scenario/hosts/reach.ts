import { namespaceOf } from '../../layout/layout.ts';
import { inNamespace, runAsync } from '../../machine/command.ts';

/** What a host without credentials reaches: of each target whether it answers. */

export interface Target {
  readonly protocol: 'tcp' | 'udp';
  readonly host: string;
  readonly port: number;
}

/** All at once: most of the time is waiting for those that do not answer. */
const ASK = `use IO::Socket::IP; use IO::Select;
for my $target (@ARGV) {
  next if fork;
  my ($protocol, $host, $port) = split /,/, $target;
  my $s = IO::Socket::IP->new(PeerHost => $host, PeerPort => $port, Proto => $protocol, Type => $protocol eq "tcp" ? 1 : 2, Timeout => 2);
  my $answers = defined $s;
  if ($answers && $protocol eq "udp") { send($s, "x" x 64, 0); $answers = IO::Select->new($s)->can_read(2) && defined recv($s, my $x, 2000, 0); }
  print "$target ", ($answers ? "answers" : "does not"), "\\n"; exit;
}
1 while wait > 0;`;

/** @param stranger its name */
export const reach = async (stranger: string, targets: readonly Target[]): Promise<string[]> => {
  const asked = targets.map(({ protocol, host, port }) => `${protocol},${host},${port}`);
  const printed = await runAsync([...inNamespace(namespaceOf(stranger)), 'perl', '-e', ASK, ...asked], {
    timeoutMs: 30_000,
  });
  return printed.trim().split('\n').sort();
};
