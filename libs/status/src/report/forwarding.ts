import { z } from 'zod';
import { count, name, word } from './bounds.ts';
import { listOf } from './entries.ts';
import { parse, type Parsed } from './parse.ts';

/** What a node's data path forwards by, as it should be and as the kernel has it: read at the node when somebody asks for it. */

export const MOST_FORWARDING_ENTRIES = 20_000;
/** Of JSON in UTF-8: what the aggregator takes as one body. */
export const LARGEST_FORWARDING_BYTES = 4 * 1024 * 1024;
/** Of one entry: gateways of a group, neighbors of a route. */
const MOST_WAYS = 256;

/** Where packets go. */
const way = z.object({
  /** Absent: the kernel finds it, or none is left by. */
  device: name.optional(),
  /** The next hop, or the far end of a tunnel: an IP address. */
  via: z.string().max(64).optional(),
  /** What carries them, or what becomes of them: wireguard, geneve, unreachable, … */
  kind: z.string().max(32).optional(),
  /** By the next-hop group of this name. */
  group: name.optional(),
  mtuBytes: count.optional(),
});

const entry = z.object({
  /** Name of the eBPF map, number of the route table, or `nexthop groups`. */
  table: name,
  /** The prefix, or the name of the group; unknown to the plan: what the kernel calls it. */
  key: z.string().min(1).max(320),
  /** InSync: as planned. Missing: it should be there. Different: it leads elsewhere. Unwanted: it should not be there. */
  state: word(['InSync', 'Missing', 'Different', 'Unwanted']),
  /** Absent: it should not be there. Empty: a group of which nobody carries anything. */
  wanted: listOf(way, MOST_WAYS).optional(),
  /** Absent: it is not there. */
  present: listOf(way, MOST_WAYS).optional(),
});

/**
 * The entries that differ come first, so that a list that is cut (`entries` has fewer than `total`) lacks none of them before all of the
 * others. What changes while it is read may show as a difference that is none a moment later.
 */
export const forwarding = z.object({
  /** When it was read, by the node's clock, RFC 3339. */
  readTime: z.string().max(40),
  dataplane: word(['ebpf', 'netlink']),
  /** Entries that there are. */
  total: count,
  /** Of these: those that are not InSync. */
  different: count,
  entries: listOf(entry, MOST_FORWARDING_ENTRIES),
});

export type Forwarding = z.infer<typeof forwarding>;
export type ForwardingEntry = z.infer<typeof entry>;
export type ForwardingWay = z.infer<typeof way>;

/** @returns an error that names field, value and what is valid */
export const parseForwarding = (input: unknown): Parsed<Forwarding> => parse(forwarding, input);
