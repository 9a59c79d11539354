import { Resolver } from 'node:dns/promises';

import { type Family, formatAddress, parseAddress, specialRangeOf } from '@unbounded/ip';

/** What a DNS name stands for. */
interface Resolution {
  /** Of the last answer; IPv4 first, sorted, so that a rotated answer is no change. Unicast only, at most 8 of a family. */
  readonly addresses: readonly string[];
  /** Why the last attempt brought no address; `addresses` are of the answer before. */
  readonly error?: string;
  /** Why it brought none of one family, which keeps those of the answer before: many names have no IPv6, and servers say so badly. */
  readonly otherFamily?: string;
  /** Families that nobody has answered for since the name was first looked up: what was known of them before counts. */
  readonly unanswered?: readonly Family[];
}

/** Asks for the addresses of one family. @throws Error with the `code` of node:dns */
export type Resolve = (name: string, family: Family) => Promise<readonly string[]>;

export interface ExternalNames {
  /** Resolves those that are due, in the background; the others are forgotten. */
  look(names: ReadonlySet<string>): void;
  /** Undefined until the first answer or failure. */
  get(name: string): Resolution | undefined;
  /** Called when a result changed. */
  on(handler: () => void): void;
}

export interface ExternalNamesOptions {
  readonly resolve: Resolve;
  /** A name is resolved again this long after its last attempt. */
  readonly intervalMs: number;
  /** Monotonic, milliseconds. */
  readonly now?: () => number;
}

const MOST_OF_A_FAMILY = 8;
/** A server that has answered nothing for so long will not: what was known before would stay for ever. */
const LONGEST_UNANSWERED_MS = 600_000;
const TIMEOUT_MS = 3000;
const TRIES = 2;

/** By the system's DNS servers, or by these (`192.0.2.53`, `[2001:db8::53]:5353`). The hosts file does not count. */
export const dnsResolve =
  (servers: readonly string[] = []): Resolve =>
  (name, family) => {
    // A new one each time: it reads resolv.conf when it is made, and that changes.
    const resolver = new Resolver({ timeout: TIMEOUT_MS, tries: TRIES });
    if (servers.length > 0) resolver.setServers(servers);
    return family === 4 ? resolver.resolve4(name) : resolver.resolve6(name);
  };

type Answer = { readonly addresses: readonly string[] } | { readonly code: string };

const usable = (texts: readonly string[]): string[] =>
  [
    ...new Set(
      texts
        .map(parseAddress)
        .filter((address) => specialRangeOf(address) === undefined)
        .map(formatAddress),
    ),
  ]
    .sort()
    .slice(0, MOST_OF_A_FAMILY);

const ask = async (resolve: Resolve, name: string, family: Family): Promise<Answer> => {
  try {
    return { addresses: usable(await resolve(name, family)) };
  } catch (error) {
    return { code: (error as { code?: string }).code ?? (error as Error).message };
  }
};

interface Entry {
  /** Absent: nobody has answered for the family. */
  readonly byFamily: Readonly<Partial<Record<Family, readonly string[]>>>;
  /** When it was first looked up. */
  readonly sinceMs: number;
  readonly resolution: Resolution | undefined;
  readonly dueMs: number;
}

/** An answer replaces; no data of one family is an answer if the other has some; a failure keeps what was. */
const merge = (
  { byFamily, sinceMs }: Entry,
  { v4, v6, nowMs }: { readonly v4: Answer; readonly v6: Answer; readonly nowMs: number },
): Pick<Entry, 'byFamily' | 'resolution'> => {
  const hasAny = [v4, v6].some((answer) => 'addresses' in answer && answer.addresses.length > 0);
  const next = (family: Family, answer: Answer): readonly string[] | undefined => {
    if ('addresses' in answer) return hasAny ? answer.addresses : byFamily[family];
    return hasAny && answer.code === 'ENODATA' ? [] : byFamily[family];
  };
  const answered = ([4, 6] as const).flatMap((family) => {
    const known = next(family, family === 4 ? v4 : v6);
    return known ? [[family, known] as const] : [];
  });
  const merged: Entry['byFamily'] = Object.fromEntries(answered);
  const addresses = answered.flatMap(([, known]) => known);
  const without = ([4, 6] as const).filter((family) => merged[family] === undefined);
  const unanswered = without.length > 0 && nowMs - sinceMs < LONGEST_UNANSWERED_MS ? { unanswered: without } : {};
  const failures = Object.entries({ A: v4, AAAA: v6 }).flatMap(([type, answer]) =>
    'code' in answer && answer.code !== 'ENODATA' ? [{ type, code: answer.code }] : [],
  );
  const [failed] = failures;
  if (!hasAny)
    return { byFamily: merged, resolution: { addresses, error: failed?.code ?? 'no usable address', ...unanswered } };
  const told = failed ? { otherFamily: `${failed.type}: ${failed.code}` } : {};
  return { byFamily: merged, resolution: { addresses, ...told, ...unanswered } };
};

export const createExternalNames = ({
  resolve,
  intervalMs,
  now = () => performance.now(),
}: ExternalNamesOptions): ExternalNames => {
  const entries = new Map<string, Entry>();
  const handlers: (() => void)[] = [];
  const refresh = async (name: string): Promise<void> => {
    const [v4, v6] = await Promise.all([ask(resolve, name, 4), ask(resolve, name, 6)]);
    const entry = entries.get(name);
    if (!entry) return; // not wanted any more
    const merged = merge(entry, { v4, v6, nowMs: now() });
    entries.set(name, { ...entry, ...merged, dueMs: now() + intervalMs });
    if (JSON.stringify(merged.resolution) !== JSON.stringify(entry.resolution))
      for (const handler of handlers) handler();
  };
  return {
    look: (names) => {
      for (const name of entries.keys()) if (!names.has(name)) entries.delete(name);
      for (const name of names) {
        const entry = entries.get(name) ?? { byFamily: {}, sinceMs: now(), resolution: undefined, dueMs: 0 };
        if (entry.dueMs > now()) continue;
        entries.set(name, { ...entry, dueMs: Infinity }); // until it is answered
        void refresh(name);
      }
    },
    get: (name) => entries.get(name)?.resolution,
    on: (handler) => void handlers.push(handler),
  };
};
