import { execFileSync } from 'node:child_process';
import type { Netns } from '@unbounded/netlink';

/** Networks of tests, by lines of `ip` for their namespaces: a process for many lines. */

/** Of `link` a line may end with `netns` and the name of another namespace. */
export type NetworkLine<Place extends string> = readonly [place: Place, line: string];

const isOfLinks = ([, line]: NetworkLine<string>): boolean => line.startsWith('link ');

/**
 * First all links, then addresses, neighbors and routes; of a namespace in the order of the lines.
 * @param ns in the order in which they make links: what makes one to another is before it
 * @throws Error at the first line that the kernel refuses
 */
export const applyNetworkLines = <Place extends string>(
  ns: Readonly<Record<Place, Netns>>,
  lines: readonly NetworkLine<Place>[],
): void => {
  const places = Object.keys(ns) as Place[];
  const named = (line: string): string => line.replace(/ netns (\w+)$/, (_, name: Place) => ` netns ${ns[name].path}`);
  for (const stage of [lines.filter(isOfLinks), lines.filter((line) => !isOfLinks(line))])
    for (const place of places) {
      const input = stage.filter(([at]) => at === place).map(([, line]) => `${named(line)}\n`);
      if (input.length === 0) continue;
      execFileSync('nsenter', [`--net=${ns[place].path}`, 'ip', '-batch', '-'], {
        input: input.join(''),
        stdio: 'pipe',
      });
    }
};

/** Until each has answered a ping: no packet of a test waits for a neighbor. @throws Error after 5 s */
export const learnNeighbors = (ns: Netns, addresses: readonly string[]): void => {
  const script = 'for to; do ping -qc1 -w5 -i0.05 "$to"; done';
  execFileSync('nsenter', [`--net=${ns.path}`, 'sh', '-ec', script, 'sh', ...addresses], { stdio: 'pipe' });
};
