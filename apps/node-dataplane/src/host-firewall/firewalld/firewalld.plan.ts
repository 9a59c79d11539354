import { FIREWALL_RULE_COMMENT } from '@unbounded/config/ownership';
import { type Family, formatPrefix, type Prefix, parsePrefix, prefixOf, withoutCovered } from '@unbounded/ip';
import type { OverlayTraffic } from '../../kernel/overlay-traffic.ts';

/**
 * What firewalld needs so that it lets the overlay pass: a zone for the overlay's devices, from which it takes everything (our own table
 * has looked at it), and two policies of what may come from elsewhere: to pods, and tunnel packets of peers to the node. Both stand behind
 * the rules of the zones and before what refuses the rest, so what an administrator denies by a rule stays denied. Marks of ours, by which
 * iptables knows what belongs to the overlay, cannot be asked for by a rule of firewalld: addresses, ports and devices do it here.
 */

export type Setting = string | number | boolean | readonly string[];
/** By firewalld's own names (firewalld.dbus(5)). */
export type Settings = Readonly<Record<string, Setting>>;

export const KINDS = ['ipset', 'zone', 'policy'] as const;
export type Kind = (typeof KINDS)[number];

/** Objects of firewalld by their names, which are our own. */
export type Objects = Readonly<Record<Kind, Readonly<Record<string, Settings>>>>;

export const OVERLAY_ZONE = 'unbounded';
const POLICIES = { forward: 'unbounded-forward', input: 'unbounded-input' } as const;
const SETS = { peers: 'unbounded-peers', entries: 'unbounded-entries' } as const;
const FAMILIES: readonly Family[] = [4, 6];
const setName = (name: string, family: Family): string => `${name}${family}`;

/** Names of all that is ours. */
export const OUR_NAMES: Readonly<Record<Kind, readonly string[]>> = {
  ipset: Object.values(SETS).flatMap((name) => FAMILIES.map((family) => setName(name, family))),
  zone: [OVERLAY_ZONE],
  policy: Object.values(POLICIES),
};

/** By the description it is known whose an object is. */
const OURS = { version: '', short: 'Unbounded', description: FIREWALL_RULE_COMMENT } as const;
/** Behind policies of others that have the default, -1, or any other below: those are asked first. */
const PRIORITY = 32_000;

/** A hash:net has no prefix of length 0: it is written as its halves. */
const withoutZero = (prefix: Prefix): Prefix[] => {
  if (prefix.length > 0) return [prefix];
  const { family } = prefix;
  const half = 1n << (family === 4 ? 31n : 127n);
  return [0n, half].map((value) => prefixOf({ family, value }, 1));
};

const asPrefix = (text: string): Prefix =>
  parsePrefix(text.includes('/') ? text : `${text}/${text.includes(':') ? 128 : 32}`);

/** In one form and without what others cover: firewalld refuses entries that overlap. */
const entriesOf = (prefixes: readonly string[], family: Family): string[] =>
  withoutCovered(prefixes.map(asPrefix).filter((prefix) => prefix.family === family))
    .flatMap(withoutZero)
    .map(formatPrefix);

const ipSet = (family: Family, prefixes: readonly string[]): Settings => ({
  ...OURS,
  type: 'hash:net',
  family: family === 4 ? 'inet' : 'inet6',
  entries: entriesOf(prefixes, family),
});

const policy = (ingress: string, egress: string, rules: readonly string[]): Settings => ({
  ...OURS,
  target: 'CONTINUE',
  priority: PRIORITY,
  ingress_zones: [ingress],
  egress_zones: [egress],
  rich_rules: rules,
});

/** As firewalld prints it, so that what is there can be compared. */
const fromSet = (family: Family, name: string, what = ''): string =>
  `rule family="ipv${family}" source ipset="${setName(name, family)}" ${what}accept`;

const inputRules = ({ peerPorts, peerProtocols, openPorts }: OverlayTraffic): string[] => {
  const udp = (port: number): string => `port port="${port}" protocol="udp" `;
  const ofPeers = [...peerPorts.map(udp), ...peerProtocols.map((number) => `protocol value="${number}" `)];
  return [
    ...FAMILIES.flatMap((family) => ofPeers.map((what) => fromSet(family, SETS.peers, what))),
    ...openPorts.map((port) => `rule ${udp(port)}accept`),
  ];
};

export const planFirewalld = (traffic: OverlayTraffic): Objects => ({
  ipset: Object.fromEntries(
    FAMILIES.flatMap((family) => [
      [setName(SETS.peers, family), ipSet(family, traffic.peers)],
      [setName(SETS.entries, family), ipSet(family, traffic.entries)],
    ]),
  ),
  zone: {
    [OVERLAY_ZONE]: { ...OURS, target: 'ACCEPT', forward: true, interfaces: traffic.devices },
  },
  policy: {
    [POLICIES.forward]: policy(
      'ANY',
      OVERLAY_ZONE,
      FAMILIES.map((family) => fromSet(family, SETS.entries)),
    ),
    [POLICIES.input]: policy('ANY', 'HOST', inputRules(traffic)),
  },
});

export const NO_OBJECTS: Objects = { ipset: {}, zone: {}, policy: {} };

/** What can be changed without a reload; the rest is in force with the next one. */
const AT_RUNTIME: Readonly<Record<Kind, readonly string[]>> = {
  ipset: ['entries'],
  zone: ['interfaces', 'forward'],
  policy: ['rich_rules', 'ingress_zones', 'egress_zones'],
};

type Store = 'permanent' | 'runtime';
export type Step =
  | {
      readonly do: 'add' | 'set';
      readonly store: Store;
      readonly kind: Kind;
      readonly name: string;
      readonly settings: Settings;
    }
  | { readonly do: 'remove'; readonly kind: Kind; readonly name: string };

export interface FoundObjects {
  /** On disk, in force after a reload. */
  readonly permanent: Objects;
  /** In force. */
  readonly runtime: Objects;
}

/** Firewalld leaves out what has its default. */
const isSame = (wanted: Setting, found: Setting | undefined): boolean => {
  if (typeof wanted !== 'object') return (found ?? '') === wanted || (!found && !wanted);
  const [a, b] = [new Set(wanted), new Set((found ?? []) as readonly string[])];
  return a.size === b.size && [...a].every((one) => b.has(one));
};

const differs = (wanted: Settings, found: Settings): boolean =>
  Object.entries(wanted).some(([key, value]) => !isSame(value, found[key]));

const only = (settings: Settings, keys: readonly string[]): Settings =>
  Object.fromEntries(Object.entries(settings).filter(([key]) => keys.includes(key)));

export interface FirewalldChanges {
  readonly steps: readonly Step[];
  /** Objects come into being, and go, with a reload alone. */
  readonly needsReload: boolean;
}

const permanentStep = (kind: Kind, name: string, settings: Settings, found: Settings | undefined): Step[] => {
  if (found === undefined) return [{ do: 'add', store: 'permanent', kind, name, settings }];
  return differs(settings, found) ? [{ do: 'set', store: 'permanent', kind, name, settings }] : [];
};

const runtimeStep = (kind: Kind, name: string, settings: Settings, found: Settings | undefined): Step[] => {
  const wanted = only(settings, AT_RUNTIME[kind]);
  return found !== undefined && differs(wanted, found)
    ? [{ do: 'set', store: 'runtime', kind, name, settings: wanted }]
    : [];
};

/** In the order in which objects name each other. */
export const planFirewalldChanges = (wanted: Objects, { permanent, runtime }: FoundObjects): FirewalldChanges => {
  const each = KINDS.flatMap((kind) =>
    Object.entries(wanted[kind]).map(([name, settings]) => ({ kind, name, settings })),
  );
  const steps = [
    ...each.flatMap(({ kind, name, settings }) => permanentStep(kind, name, settings, permanent[kind][name])),
    ...each.flatMap(({ kind, name, settings }) => runtimeStep(kind, name, settings, runtime[kind][name])),
    ...KINDS.toReversed().flatMap((kind) =>
      Object.keys(permanent[kind])
        .filter((name) => !(name in wanted[kind]))
        .map((name): Step => ({ do: 'remove', kind, name })),
    ),
  ];
  const isMissing = each.some(({ kind, name }) => !(name in runtime[kind]));
  const isLeft = KINDS.some((kind) => Object.keys(runtime[kind]).some((name) => !(name in wanted[kind])));
  return { steps, needsReload: isMissing || isLeft };
};

/** Objects that have our names and are somebody else's. */
export const foreignObjects = ({ permanent }: FoundObjects): string[] =>
  KINDS.flatMap((kind) =>
    Object.entries(permanent[kind])
      .filter(([, { description }]) => description !== FIREWALL_RULE_COMMENT)
      .map(([name]) => `${kind} ${name}`),
  );
