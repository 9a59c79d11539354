import type { ReachedSites } from './probe.codec.ts';
import { siteHash } from './site-hash.ts';
import type { PeerState } from './state.ts';

/** Which members of a next-hop group carry traffic. */

export interface Candidate {
  /** A higher tier is used only while no member of a lower one is usable. */
  readonly tier: number;
  /** Undefined: the peer is not probed, and counts as healthy. */
  readonly state: PeerState | undefined;
  /** Whether the peer says that it reaches the group's site; undefined: it says nothing of sites. */
  readonly reaches: boolean | undefined;
  /** Whether a peer that is New may still be given the benefit of the doubt. */
  readonly inGrace: boolean;
  /** false: it answers probes, but returns no echo. Undefined: none is sent through it. */
  readonly forwards?: boolean | undefined;
  /** Of one that answers no probe any more, or no echo: since when. Undefined: before anything is known. */
  readonly lost?: Lost | undefined;
}

export interface Lost {
  /** When the first probe, or echo, was sent that is missed; of all members on the same clock. */
  readonly sinceMs: number;
  /** Time in which a loss is noticed: what is lost together is lost at most so long one after the other. */
  readonly detectMs: number;
}

const isProven = ({ state }: Candidate): boolean => state === undefined || state === 'Healthy' || state === 'Degraded';

const isYoung = ({ state, inGrace }: Candidate): boolean => state === 'New' && inGrace;

/** Proven, and does not deny that it reaches the site. */
const isAnswering = (member: Candidate): boolean => isProven(member) && member.reaches !== false;

/** And returns echoes. */
export const isUsable = (member: Candidate): boolean => isAnswering(member) && member.forwards !== false;

/**
 * Those that were lost last, and with them. A moment in which this node hears nothing must not bring back those that were lost long
 * before: what is known of them still stands.
 */
const lostLast = (members: readonly Candidate[]): readonly Candidate[] => {
  const since = ({ lost }: Candidate): number => lost?.sinceMs ?? -Infinity;
  const last = Math.max(...members.map(since));
  const togetherMs = Math.max(0, ...members.map(({ lost }) => lost?.detectMs ?? 0));
  return members.filter((member) => since(member) >= last - togetherMs);
};

/**
 * From best to worst; the first kind that any member is of carries, in its lowest tier. Unhealthy and Recovering peers were
 * healthy once. A path that never answered comes last, but it comes: where it is the only way, the probes that are to prove
 * it may have to take it themselves.
 */
const KINDS: readonly ((members: readonly Candidate[]) => readonly Candidate[])[] = [
  (members) => members.filter(isUsable),
  (members) => lostLast(members.filter(isAnswering)), // no echo comes back by any: what does not forward may be this node
  (members) => members.filter((member) => isYoung(member) && member.reaches !== false),
  (members) => members.filter(isProven), // it denies the site, but may go round through a gateway of its pool
  (members) => members.filter(isYoung), // it denies the site, perhaps only as its own peers are as young
  (members) => lostLast(members.filter(({ state }) => state === 'Unhealthy' || state === 'Recovering')),
  (members) => members,
];

/** Weights of the members, in their order: 1 carries, 0 does not. Of a group that has members some carry. */
export const selectMembers = (members: readonly Candidate[]): number[] => {
  const nearest = Math.min(...members.map(({ tier }) => tier));
  // Who denies the site and is itself only a way round would send the packet back.
  const eligible = members.filter(({ tier, reaches }) => tier === nearest || reaches !== false);
  const carriers = KINDS.map((of) => of(eligible)).find((those) => those.length > 0) ?? [];
  const tier = Math.min(...carriers.map((member) => member.tier));
  const chosen = new Set(carriers.filter((member) => member.tier === tier));
  return members.map((member) => (chosen.has(member) ? 1 : 0));
};

/** Whether a peer that said this reaches a site; undefined when it cannot be told. */
export const reachesSite = (said: ReachedSites | undefined, site: string | undefined): boolean | undefined => {
  if (!said || site === undefined) return undefined;
  return said.hashes.includes(siteHash(site)) || (said.truncated ? undefined : false);
};

/**
 * The sites that a gateway says it reaches: those it serves, and those with a usable member of the nearest tier. Ways
 * round do not count, or two gateways would send their workers' packets to each other. Nor do echoes: those who use it find out for
 * themselves, and a gateway whose own device of echoes is at fault must not drive everybody away.
 */
export const reachedSites = (
  servedSites: readonly string[],
  groups: readonly { readonly site?: string; readonly members: readonly Candidate[] }[],
): string[] => {
  const behind = groups.flatMap(({ site, members }) =>
    site !== undefined && members.some((member) => member.tier === 0 && isAnswering(member)) ? [site] : [],
  );
  return [...new Set([...servedSites, ...behind])].sort();
};
