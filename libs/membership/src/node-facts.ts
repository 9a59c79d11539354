import { annotations, labels, type ObjectMeta } from '@unbounded/crds';
import { type Address, parseAddress, type Prefix, tryParsePrefix } from '@unbounded/ip';

/** The part of a Kubernetes Node that decides where it belongs. */
export interface NodeObject {
  readonly metadata: ObjectMeta;
  readonly spec?: { readonly podCIDR?: string; readonly podCIDRs?: readonly string[] };
  readonly status?: { readonly addresses?: readonly { readonly type: string; readonly address: string }[] };
}

/** What a Node says about itself, parsed. Addresses and blocks that are no such thing are left out. */
export interface NodeFacts {
  readonly name: string;
  readonly uid: string;
  /** RFC 3339. */
  readonly createdAt: string;
  readonly labels: Readonly<Record<string, string>>;
  /** In the order of the Node's status. */
  readonly internalAddresses: readonly Address[];
  readonly internalIPs: readonly string[];
  readonly externalIPs: readonly string[];
  readonly podCIDRs: readonly string[];
  readonly podPrefixes: readonly Prefix[];
  readonly wireGuardPublicKey?: string;
  /** Absent: 0, the key is the node's first. */
  readonly wireGuardKeyGeneration?: number;
  /** The key that follows, while the node exchanges its key. */
  readonly wireGuardNextPublicKey?: string;
  /** Absent: the node has not said what it can do. */
  readonly tunnelProtocols?: readonly string[];
  /** The Site that the node is labelled with. */
  readonly siteLabel?: string;
}

const tryParseAddress = (text: string): Address | undefined => {
  try {
    return parseAddress(text);
  } catch {
    return undefined;
  }
};

const addressTexts = (node: NodeObject, type: string): readonly string[] =>
  (node.status?.addresses ?? [])
    .filter((entry) => entry.type === type && tryParseAddress(entry.address) !== undefined)
    .map(({ address }) => address);

const blocksOf = ({ spec }: NodeObject): readonly string[] =>
  spec?.podCIDRs && spec.podCIDRs.length > 0 ? spec.podCIDRs : spec?.podCIDR ? [spec.podCIDR] : [];

/** Something else than a number counts as absent, as on a node that never exchanged its key. */
const parseGeneration = (text: string | undefined): number | undefined =>
  text !== undefined && /^[1-9]\d{0,8}$/.test(text) ? Number(text) : undefined;

/** Objects from a cache do not change, so neither do their facts: 5,000 nodes are parsed once, not at every event. */
const known = new WeakMap<NodeObject, NodeFacts>();

export const nodeFacts = (node: NodeObject): NodeFacts => {
  const facts = known.get(node) ?? readFacts(node);
  known.set(node, facts);
  return facts;
};

/** Changes only when the facts do: most updates of a Node are the kubelet's heartbeats. */
export const nodeFingerprint = (node: NodeObject): string => {
  const { internalAddresses: _, podPrefixes: __, ...facts } = nodeFacts(node);
  return JSON.stringify(facts);
};

const readFacts = (node: NodeObject): NodeFacts => {
  const { name, uid = '', creationTimestamp = '', labels: nodeLabels = {}, annotations: notes = {} } = node.metadata;
  const internalIPs = addressTexts(node, 'InternalIP');
  const podCIDRs = blocksOf(node);
  const key = notes[annotations.wireGuardPublicKey];
  const generation = parseGeneration(notes[annotations.wireGuardKeyGeneration]);
  const nextKey = notes[annotations.wireGuardNextPublicKey];
  const protocols = notes[annotations.tunnelProtocols];
  const site = nodeLabels[labels.site];
  return {
    name,
    uid,
    createdAt: creationTimestamp,
    labels: nodeLabels,
    internalIPs,
    internalAddresses: internalIPs.map(parseAddress),
    externalIPs: addressTexts(node, 'ExternalIP'),
    podCIDRs,
    podPrefixes: podCIDRs.flatMap((text) => tryParsePrefix(text) ?? []),
    ...(key ? { wireGuardPublicKey: key } : {}),
    ...(generation === undefined ? {} : { wireGuardKeyGeneration: generation }),
    ...(nextKey ? { wireGuardNextPublicKey: nextKey } : {}),
    ...(protocols === undefined ? {} : { tunnelProtocols: [...new Set(protocols.split(',').filter(Boolean))].sort() }),
    ...(site ? { siteLabel: site } : {}),
  };
};

/** What slices and pools say of a node's key besides the key itself: nothing for most nodes. */
export const keyRotationOf = ({
  wireGuardKeyGeneration,
  wireGuardNextPublicKey,
}: NodeFacts): Pick<NodeFacts, 'wireGuardKeyGeneration' | 'wireGuardNextPublicKey'> => ({
  ...(wireGuardKeyGeneration === undefined ? {} : { wireGuardKeyGeneration }),
  ...(wireGuardNextPublicKey === undefined ? {} : { wireGuardNextPublicKey }),
});
