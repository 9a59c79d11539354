import { startLineServer } from './line-server.ts';

/** Packets by a Perl process that stays in a network namespace. */

export interface PerlServer {
  /** What `answer` returns for these words, which have no spaces. @throws Error with what it died of */
  ask(...words: readonly (string | number)[]): Promise<string>;
  end(): void;
}

/**
 * Sockets are lexical variables of `answer`: they are closed when it returns, so nothing sends a segment again. The pause is as long as the
 * end of a process takes: what the kernel puts off to ksoftirqd has arrived by then.
 */
const LOOP = `$| = 1;
while (defined(my $line = <STDIN>)) {
  chomp $line;
  my $text = eval { answer(split / /, $line) };
  my $error = $@;
  select(undef, undef, undef, 0.005);
  $error =~ s/\\s+/ /g;
  print $error ne "" ? "error: $error" : defined $text ? "ok $text" : "ok", "\\n";
}`;

/**
 * @param within the command that enters a network, before the program: `['nsenter', '--net=…']`
 * @param program defines `sub answer`
 */
export const startPerl = (within: readonly string[], program: string): PerlServer => {
  const [command, ...args] = [...within, 'perl', '-e', `${program}\n${LOOP}`];
  const server = startLineServer(command, args);
  return { ask: (...words) => server.ask(words.join(' ')), end: server.end };
};
