import type { GatewayPool, SiteNodeSlice } from '@unbounded/crds';

/** The keys that relays of the cluster serve, as a ConfigMap that they mount. */

export const KEYS_CONFIG_MAP = 'relay-keys';
/** Its only entry, and so the name of the file. */
export const KEYS_FILE = 'keys';
/** On a relay's pod: which list it is to have. A kubelet brings what is mounted up to date when an annotation of the pod changes. */
export const KEYS_ANNOTATION = 'net.unbounded-cloud.io/relay-keys';
/** 45 bytes each; an object may have 1 MiB. Nodes have two while they exchange their key. */
export const MOST_KEYS = 22_000;

const KEY = /^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$/;

interface Keyed {
  readonly wireGuardPublicKey?: string;
  readonly wireGuardNextPublicKey?: string;
}

const keysOf = ({ wireGuardPublicKey, wireGuardNextPublicKey }: Keyed): string[] =>
  [wireGuardPublicKey, wireGuardNextPublicKey].filter((key) => key !== undefined && KEY.test(key)) as string[];

/** What of these objects the list is made of: it changes with nothing else. */
export const sliceKeys = ({ nodes = [] }: SiteNodeSlice): string => nodes.flatMap(keysOf).join(' ');
export const poolKeys = ({ status }: GatewayPool): string => (status?.nodes ?? []).flatMap(keysOf).join(' ');

export interface RelayKeys {
  /** One key a line, sorted. */
  readonly text: string;
  readonly count: number;
  /** Keys beyond what fits. */
  readonly omitted: number;
}

/** Keys of all nodes of sites and pools, also those that follow; what is no key is none. */
export const planRelayKeys = (slices: readonly SiteNodeSlice[], pools: readonly GatewayPool[]): RelayKeys => {
  const all = new Set([
    ...slices.flatMap(({ nodes = [] }) => nodes.flatMap(keysOf)),
    ...pools.flatMap(({ status }) => (status?.nodes ?? []).flatMap(keysOf)),
  ]);
  const kept = [...all].toSorted().slice(0, MOST_KEYS);
  const text = kept.map((key) => `${key}\n`).join('');
  return { text, count: kept.length, omitted: all.size - kept.length };
};
