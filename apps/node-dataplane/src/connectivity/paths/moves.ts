import type { PathReason, PathReport } from './messages.ts';

/** What people are told of paths. */

const WHY: Readonly<Record<PathReason, string>> = {
  validated: 'probes were answered both ways',
  unanswered: 'probes were not answered',
  peer: 'the peer went back to the relay',
  unvalidated: 'the relay is there, and direct is not validated',
  noDirect: 'no endpoint of the peer is known',
  noRelay: 'no relay is connected',
  always: 'the Mesh requires it',
  adopted: 'adopted from the previous agent',
  handshake: 'direct WireGuard handshake, not yet validated by probes',
};
export const pathReasonText = (reason: PathReason): string => WHY[reason];
const NAMES = { direct: 'direct', relay: 'the relay' } as const;

/** A move in words. */
export const moveText = ({ node, device, from, path, reason }: PathReport): string =>
  `path to ${node} (${device}) changed from ${from === undefined ? 'nothing' : NAMES[from]} to ${NAMES[path]}: ${WHY[reason]}`;

export interface PathSummary {
  /** Paths that have a relay. */
  readonly total: number;
  /** Those that go over it, by node, with the reason. */
  readonly relayed: readonly string[];
}

const LISTED = 5;

/** Undefined: no peer has a relay. */
export const summarize = (paths: readonly PathReport[]): PathSummary | undefined => {
  if (paths.length === 0) return undefined;
  const relayed = paths
    .filter(({ path }) => path === 'relay')
    .map(({ node, device, reason }) => `${node} (${device}: ${WHY[reason]})`)
    .sort();
  return { total: paths.length, relayed };
};

/** At most so many by name. */
export const listed = (texts: readonly string[], separator: string): string => {
  const more = texts.length > LISTED ? `${separator}and ${texts.length - LISTED} more` : '';
  return `${texts.slice(0, LISTED).join(separator)}${more}`;
};
