import { mkdtempSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { end, inNamespace, run, start, until } from './command.ts';
import { type Segment, SWITCHES } from './underlay.ts';

/** What a segment carried. */
export interface Carried {
  /** Packets that match the filter (pcap-filter(7)). */
  readonly matching: number;
  /** IPv4 packets besides. */
  readonly others: number;
  /** The marker was seen as it is. */
  readonly hasMarker: boolean;
}

export interface Capture {
  stop(filter: string, marker: string): Promise<Carried>;
}

const countOf = async (file: string, filter: string): Promise<number> =>
  (await run(['tcpdump', '-nr', file, filter])).split('\n').filter((line) => line !== '').length;

/** Records every packet of a segment. Resolves when nothing is missed any more. */
export const startCapture = async (segment: Segment): Promise<Capture> => {
  const file = join(mkdtempSync('/run/capture-'), `${segment}.pcap`);
  let listens = false;
  const argv = ['tcpdump', '-Z', 'root', '-U', '-n', '-s', '0', '-i', segment, '-w', file];
  const child = start([...inNamespace(SWITCHES), ...argv], (line) => {
    listens ||= line.includes('listening on');
  });
  await until(`tcpdump listens on ${segment}`, () => listens);
  return {
    async stop(filter, marker) {
      await end(child, 'SIGINT');
      return {
        matching: await countOf(file, filter),
        others: await countOf(file, `ip and not igmp and not (${filter})`),
        hasMarker: readFileSync(file).includes(marker),
      };
    },
  };
};
