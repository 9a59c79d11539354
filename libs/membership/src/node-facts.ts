import {
  AGENT_ANNOTATIONS,
  annotations,
  FIRST_GATEWAY_WIREGUARD_PORT,
  L2_LOCATOR_BITS,
  labels,
  LONGEST_AGENT_ANNOTATION,
  LONGEST_ROTATION_REQUEST,
  LAST_GATEWAY_WIREGUARD_PORT,
  MAX_NODE_ADDRESSES,
  NODE_FEATURES,
  type ObjectMeta,
  TUNNEL_PROTOCOLS,
  WIREGUARD_KEY_PATTERN,
} from '@unbounded/crds';
import {
  type Address,
  formatAddress,
  formatPrefix,
  type Prefix,
  SHORTEST_BLOCK,
  specialRangeIn,
  specialRangeOf,
  tryParsePrefix,
} from '@unbounded/ip';

import { parseExternalAddresses, tryParseAddress } from './external-address.ts';
import { type NodeProblem, quote } from './node-problem.ts';

/** The part of a Kubernetes Node that decides where it belongs. */
export interface NodeObject {
  readonly metadata: ObjectMeta;
  readonly spec?: { readonly podCIDR?: string; readonly podCIDRs?: readonly string[] };
  readonly status?: { readonly addresses?: readonly { readonly type: string; readonly address: string }[] };
}

/**
 * What a Node states about itself, validated: each field fits the schemas of SiteNodeSlice and GatewayPool, whatever the Node
 * says. What is malformed is left out and stands in `problems`.
 */
export interface NodeFacts {
  readonly name: string;
  readonly uid: string;
  /** RFC 3339. */
  readonly createdAt: string;
  readonly labels: Readonly<Record<string, string>>;
  /** In the order of the Node's status; unicast, each once, at most 32. */
  readonly internalAddresses: readonly Address[];
  /** The same as canonical text. */
  readonly internalIPs: readonly string[];
  /** Of the annotation `external-address` if it names any, else of the status; as above. */
  readonly externalIPs: readonly string[];
  /** DNS names of the annotation, whose addresses belong to `externalIPs` too. */
  readonly externalNames: readonly string[];
  /** Those of `externalIPs` that the annotation names as addresses: an administrator's word, not the node's or a DNS server's. */
  readonly literalExternalIPs: readonly string[];
  /** The external addresses come from the annotation, as addresses or by DNS names, not from the node. */
  readonly isExternalAnnotated: boolean;
  /** Canonical; parallel to `podPrefixes`. */
  readonly podCIDRs: readonly string[];
  readonly podPrefixes: readonly Prefix[];
  /** The Node has pod CIDRs, usable or not: `spec.podCIDRs` cannot be set again. */
  readonly hasPodCIDRs: boolean;
  readonly wireGuardPublicKey?: string;
  /** Absent: 0, the key is the node's first. */
  readonly wireGuardKeyGeneration?: number;
  /** The key that follows, during a key rotation. */
  readonly wireGuardNextPublicKey?: string;
  /** The gateway port that gateway-health recorded on the Node. */
  readonly wireGuardPort?: number;
  /** The text that requests a key rotation. */
  readonly rotateKey?: string;
  /** Known ones, sorted. Absent: not yet reported. */
  readonly tunnelProtocols?: readonly string[];
  /** What the node's agent supports of the features that we know, sorted. Absent: none. */
  readonly features?: readonly string[];
  /** The annotation's IPv6 /64 of unicast addresses, canonical. Absent: the node has no part in stretched L2. */
  readonly l2Locator?: string;
  /** The Site that the node is labelled with. */
  readonly siteLabel?: string;
  readonly problems: readonly NodeProblem[];
}

/** Entries of `status.addresses` and `spec.podCIDRs` that are looked at. */
const MOST_ENTRIES = 256;

const WIREGUARD_KEY = new RegExp(WIREGUARD_KEY_PATTERN);
const KEY_GENERATION = new RegExp(AGENT_ANNOTATIONS[annotations.wireGuardKeyGeneration]!);
/** All zero: what a file of zero bytes decodes to, and a point of low order on Curve25519 (RFC 7748 6.1). */
const ZERO_KEY = `${'A'.repeat(43)}=`;

export const annotationField = (name: string): string => `metadata.annotations[${name}]`;

const parseKey = (node: NodeObject, name: string, file: string, problems: NodeProblem[]): string | undefined => {
  const text = node.metadata.annotations?.[name];
  if (text === undefined || text === '') return undefined;
  if (WIREGUARD_KEY.test(text) && text !== ZERO_KEY) return text;
  problems.push({
    reason: 'InvalidWireGuardKey',
    field: annotationField(name),
    message: `${quote(text)} is not a WireGuard public key: a key is 32 bytes, not all zero, in base64 (44 characters); check ${file} on the node and restart its agent`,
  });
  return undefined;
};

const parseGeneration = (text: string | undefined, problems: NodeProblem[]): number | undefined => {
  if (text === undefined) return undefined;
  if (KEY_GENERATION.test(text)) return Number(text) || undefined;
  const field = annotationField(annotations.wireGuardKeyGeneration);
  const message = `${quote(text)} is not a key generation: it must be an integer from 0 to 999999999; restart the node's agent, which writes it`;
  problems.push({ reason: 'InvalidKeyGeneration', field, message });
  return undefined;
};

const parsePort = (text: string | undefined, problems: NodeProblem[]): number | undefined => {
  if (text === undefined) return undefined;
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  if (port >= FIRST_GATEWAY_WIREGUARD_PORT && port <= LAST_GATEWAY_WIREGUARD_PORT) return port;
  const field = annotationField(annotations.wireGuardPort);
  const message = `${quote(text)} is not a gateway's port: it must be an integer from ${FIRST_GATEWAY_WIREGUARD_PORT} to ${LAST_GATEWAY_WIREGUARD_PORT}; gateway-health assigns another`;
  problems.push({ reason: 'InvalidWireGuardPort', field, message });
  return undefined;
};

const parseProtocols = (text: string | undefined, problems: NodeProblem[]): readonly string[] | undefined => {
  if (text === undefined) return undefined;
  const given = text.length > LONGEST_AGENT_ANNOTATION ? [text] : [...new Set(text.split(',').filter(Boolean))];
  const known = given.filter((name) => TUNNEL_PROTOCOLS.some((protocol) => protocol === name)).sort();
  const unknown = given.filter((name) => !known.includes(name));
  if (unknown.length > 0) {
    const field = annotationField(annotations.tunnelProtocols);
    const message = `${quote(unknown.join(','))} names no tunnel protocol: valid are ${TUNNEL_PROTOCOLS.join(', ')}; the node's agent writes it: bring agent and controllers to one version`;
    problems.push({ reason: 'UnknownTunnelProtocol', field, message });
  }
  return known;
};

/** Of a newer agent there may be more, on which nobody relies yet: no problem. */
const parseFeatures = (text: string | undefined): readonly string[] => {
  if (text === undefined || text.length > LONGEST_AGENT_ANNOTATION) return [];
  const given = new Set(text.split(','));
  return NODE_FEATURES.filter((feature) => given.has(feature)).sort();
};

const parseRotationRequest = (text: string | undefined, problems: NodeProblem[]): string | undefined => {
  if (text === undefined || text.length <= LONGEST_ROTATION_REQUEST) return text;
  const field = annotationField(annotations.rotateWireGuardKey);
  const message = `${quote(text)} does not ask for a new key: write a text of at most ${LONGEST_ROTATION_REQUEST} characters`;
  problems.push({ reason: 'InvalidRotationRequest', field, message });
  return undefined;
};

const parseLocator = (text: string | undefined, problems: NodeProblem[]): string | undefined => {
  if (text === undefined) return undefined;
  const prefix = tryParsePrefix(text);
  const isUsable = prefix?.family === 6 && prefix.length === L2_LOCATOR_BITS && !specialRangeIn(prefix);
  if (isUsable && formatPrefix(prefix) === text) return text;
  const field = annotationField(annotations.l2Locator);
  const message = `${quote(text)} is not a locator: it must be an IPv6 block of /${L2_LOCATOR_BITS} of unicast addresses in its canonical form like fd53:ab:cd:1::/64; remove the annotation, cidr-allocator gives the node another`;
  problems.push({ reason: 'InvalidL2Locator', field, message });
  return undefined;
};

const parseAddresses = (node: NodeObject, type: string, problems: NodeProblem[]): readonly Address[] => {
  const field = 'status.addresses';
  const entries = (node.status?.addresses ?? []).filter((entry) => entry.type === type);
  const usable = new Map<string, Address>();
  for (const { address: text } of entries.slice(0, MOST_ENTRIES)) {
    const address = tryParseAddress(text);
    const special = address && specialRangeOf(address);
    if (address && !special) usable.set(formatAddress(address), address);
    else {
      const why = special ? `a ${special} address` : 'not an IP address';
      const message = `${type} ${quote(text)} is ${why} and is not used: give the kubelet a unicast address of the node (--node-ip)`;
      problems.push({ reason: 'UnusableAddress', field, message });
    }
  }
  if (usable.size > MAX_NODE_ADDRESSES) {
    const message = `${usable.size} addresses of type ${type}: the first ${MAX_NODE_ADDRESSES} are used; limit what the kubelet or the cloud provider reports`;
    problems.push({ reason: 'TooManyAddresses', field, message });
  }
  return [...usable.values()].slice(0, MAX_NODE_ADDRESSES);
};

const givenBlocks = ({ spec }: NodeObject): readonly string[] =>
  spec?.podCIDRs && spec.podCIDRs.length > 0 ? spec.podCIDRs : spec?.podCIDR ? [spec.podCIDR] : [];

const parseBlocks = (given: readonly string[], problems: NodeProblem[]): readonly Prefix[] => {
  const field = 'spec.podCIDRs';
  const usable = new Map<string, Prefix>();
  for (const text of given.slice(0, MOST_ENTRIES)) {
    const prefix = tryParsePrefix(text);
    if (prefix && prefix.length >= SHORTEST_BLOCK[prefix.family] && !specialRangeIn(prefix))
      usable.set(formatPrefix(prefix), prefix);
    else {
      const message = `${quote(text)} is not a block of unicast addresses such as 100.64.3.0/24 and is not used: delete the Node object and register the node anew`;
      problems.push({ reason: 'InvalidPodCIDR', field, message });
    }
  }
  if (usable.size > MAX_NODE_ADDRESSES) {
    const message = `${usable.size} blocks: the first ${MAX_NODE_ADDRESSES} are used; delete the Node object and register the node anew`;
    problems.push({ reason: 'TooManyPodCIDRs', field, message });
  }
  return [...usable.values()].slice(0, MAX_NODE_ADDRESSES);
};

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

const readKeys = (node: NodeObject, problems: NodeProblem[]) => {
  const notes = node.metadata.annotations ?? {};
  const key = parseKey(node, annotations.wireGuardPublicKey, '/etc/wireguard/server.priv', problems);
  const generation = parseGeneration(notes[annotations.wireGuardKeyGeneration], problems);
  const next = parseKey(node, annotations.wireGuardNextPublicKey, '/etc/wireguard/server.next.priv', problems);
  return {
    ...(key === undefined ? {} : { wireGuardPublicKey: key }),
    ...(generation === undefined ? {} : { wireGuardKeyGeneration: generation }),
    ...(next === undefined || next === key ? {} : { wireGuardNextPublicKey: next }),
  };
};

const readExternal = (node: NodeObject, problems: NodeProblem[]) => {
  const annotated = parseExternalAddresses(node.metadata.annotations?.[annotations.externalAddress], problems);
  return annotated
    ? {
        externalIPs: annotated.addresses,
        externalNames: annotated.names,
        literalExternalIPs: annotated.addresses,
        isExternalAnnotated: true,
      }
    : {
        externalIPs: parseAddresses(node, 'ExternalIP', problems).map(formatAddress),
        externalNames: [],
        literalExternalIPs: [],
        isExternalAnnotated: false,
      };
};

const readFacts = (node: NodeObject): NodeFacts => {
  const { name, uid = '', creationTimestamp = '', labels: nodeLabels = {}, annotations: notes = {} } = node.metadata;
  const problems: NodeProblem[] = [];
  const internalAddresses = parseAddresses(node, 'InternalIP', problems);
  const given = givenBlocks(node);
  const podPrefixes = parseBlocks(given, problems);
  const port = parsePort(notes[annotations.wireGuardPort], problems);
  const rotateKey = parseRotationRequest(notes[annotations.rotateWireGuardKey], problems);
  const protocols = parseProtocols(notes[annotations.tunnelProtocols], problems);
  const features = parseFeatures(notes[annotations.features]);
  const locator = parseLocator(notes[annotations.l2Locator], problems);
  const site = nodeLabels[labels.site];
  return {
    name,
    uid,
    createdAt: creationTimestamp,
    labels: nodeLabels,
    internalAddresses,
    internalIPs: internalAddresses.map(formatAddress),
    ...readExternal(node, problems),
    podCIDRs: podPrefixes.map(formatPrefix),
    podPrefixes,
    hasPodCIDRs: given.length > 0,
    ...readKeys(node, problems),
    ...(port === undefined ? {} : { wireGuardPort: port }),
    ...(rotateKey === undefined ? {} : { rotateKey }),
    ...(protocols === undefined ? {} : { tunnelProtocols: protocols }),
    ...(features.length === 0 ? {} : { features }),
    ...(locator === undefined ? {} : { l2Locator: locator }),
    ...(site ? { siteLabel: site } : {}),
    problems,
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
