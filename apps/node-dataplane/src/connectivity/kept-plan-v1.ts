import { type Family, parseAddress, tryParsePrefix } from '@unbounded/ip';
import type {
  BlockPlan,
  BoundaryPlan,
  Destination,
  EchoPlan,
  GroupPlan,
  Holding,
  LocatorPlan,
  NodePlan,
  NodeRelay,
  ProbePlan,
  Problem,
  TunnelPeer,
  WireGuardInterfacePlan,
  WireGuardPeerPlan,
} from '@unbounded/topology';
import { z } from 'zod';

/**
 * Version 1 of the kept plan. Names of prefixes and addresses are checked here, since the agent parses them wherever it goes on. What
 * a plan need not have stays absent, which has a meaning of its own (see NodePlan); what is not known is left out. A field that
 * version 1 is given later, and that files of before do not have, takes a default here.
 */

/** Every field of a type: one that is added to the plan and forgotten here would be lost at each restart. */
type Fields<T> = { readonly [Name in keyof T]-?: z.ZodType<T[Name]> };

const isAddress = (text: string): boolean => {
  try {
    return parseAddress(text) !== undefined;
  } catch {
    return false;
  }
};
const address = z.string().refine(isAddress, 'must be an address');
const prefix = z.string().refine((text) => tryParsePrefix(text) !== undefined, 'must be a prefix like 192.0.2.0/24');
const prefixes = z.array(prefix);
const texts = z.array(z.string());
const bytes = z.int().min(1);
const count = z.int().min(0);
const port = z.int().min(0).max(65_535);
const family: z.ZodType<Family> = z.literal([4, 6]);
const unencrypted = z.enum(['VXLAN', 'GENEVE', 'IPIP']);

const wireGuardHop = z.object({ protocol: z.literal('WireGuard'), node: z.string(), device: z.string() });
const tunnelHop = z.object({
  protocol: unencrypted,
  node: z.string(),
  remoteIp: address,
  peerIp: address.exactOptional(),
  overlayIp: address.exactOptional(),
});
const nextHop = z.discriminatedUnion('protocol', [wireGuardHop, tunnelHop]);
const tier = { tier: count };

const destination: z.ZodType<Destination> = z.union([
  z.object({ nextHop }),
  z.object({ group: z.string() }),
  z.object({ gateways: z.array(address) }),
  z.literal('pending'),
]);

const block = z.object({
  prefix,
  to: destination,
  mtuBytes: bytes,
  use: z.enum(['unrouted', 'transit', 'accepted']).exactOptional(),
  source: z.literal('node').exactOptional(),
  alsoFrom: destination.exactOptional(),
} satisfies Fields<BlockPlan>);

const group = z.object({
  name: z.string(),
  family,
  site: z.string().exactOptional(),
  members: z.array(z.discriminatedUnion('protocol', [wireGuardHop.extend(tier), tunnelHop.extend(tier)])),
} satisfies Fields<GroupPlan>);

const tunnel = z.object({
  node: z.string(),
  protocol: unencrypted,
  remoteIp: address,
  mtuBytes: bytes,
  sources: prefixes,
  isTransit: z.boolean(),
  isExternal: z.boolean(),
} satisfies Fields<TunnelPeer>);

const probe = z.object({
  node: z.string(),
  publicKey: z.string(),
  nextPublicKey: z.string().exactOptional(),
  family,
  localAddress: address,
  address,
  intervalMs: z.number().positive(),
  detectMultiplier: z.int().min(1),
} satisfies Fields<ProbePlan>);

const echo = z.object({
  node: z.string(),
  family,
  localAddress: address,
  address,
  via: nextHop,
} satisfies Fields<EchoPlan>);

const relayedPeer = z.object({
  mode: z.enum(['auto', 'always']),
  intervalMs: z.number().positive(),
  detectMultiplier: z.int().min(1),
});

const wireGuardPeer = z.object({
  node: z.string(),
  publicKey: z.string(),
  endpoint: z.string().exactOptional(),
  relay: relayedPeer.exactOptional(),
  allowedIps: prefixes,
  persistentKeepaliveSeconds: count.exactOptional(),
} satisfies Fields<WireGuardPeerPlan>);

const wireGuardInterface = z.object({
  name: z.string(),
  listenPort: port,
  mtuBytes: bytes,
  keyGeneration: count.exactOptional(),
  peers: z.array(wireGuardPeer),
} satisfies Fields<WireGuardInterfacePlan>);

const trust = { caBundle: z.string().exactOptional(), staticKey: z.string().exactOptional() };
const relay: z.ZodType<NodeRelay> = z.discriminatedUnion('provider', [
  z.object({
    provider: z.literal('external'),
    endpoint: z.string(),
    transport: z.enum(['tcp', 'tls']),
    ...trust,
  }),
  z.object({ provider: z.literal('managed'), serverName: z.string().exactOptional(), ...trust }),
]);

const holding = z.object({
  node: z.string(),
  keys: texts,
  blocks: texts,
  addresses: texts,
} satisfies Fields<Holding>);

const problem = z.object({ reason: z.string(), message: z.string() } satisfies Fields<Problem>);

const boundary = z.object({
  ownPods: prefixes,
  exits: prefixes,
  entries: prefixes,
} satisfies Fields<BoundaryPlan>);

const locators = z.object({
  own: prefix.exactOptional(),
  blocks: prefixes,
} satisfies Fields<LocatorPlan>);

const fields = z.object({
  node: z.string(),
  site: z.string(),
  role: z.enum(['worker', 'gateway']),
  podCidrs: prefixes,
  overlayAddresses: prefixes,
  underlayIp: z.union([z.literal(''), address]),
  ownAddresses: z.array(address),
  mtuBytes: bytes,
  manageCni: z.boolean(),
  wireGuard: z.array(wireGuardInterface),
  relay: relay.exactOptional(),
  tunnels: z.array(tunnel),
  groups: z.array(group),
  blocks: z.array(block),
  contained: prefixes,
  direct: prefixes,
  masquerade: z.object({ sources: prefixes, exceptTo: prefixes }),
  withheld: prefixes.exactOptional(),
  locators: locators.exactOptional(),
  probes: z.array(probe),
  echoes: z.array(echo).exactOptional(),
  servedSites: texts,
  alsoPlain: prefixes.exactOptional(),
  alsoPlainBy: z.array(z.object({ prefix, gateways: z.array(address) })).exactOptional(),
  holdings: z.array(holding),
  routesNodes: z.literal(true).exactOptional(),
  tunnelEnds: z.object({ addresses: prefixes, wireGuardPorts: z.array(port), allowed: prefixes.exactOptional() }),
  problems: z.array(problem),
} satisfies Fields<Omit<NodePlan, 'boundary'>>);

/** For a file of an agent that had no boundary: what a gateway reaches directly, and nothing at a worker. */
const boundaryOf = ({ role, manageCni, podCidrs, direct, masquerade }: z.infer<typeof fields>): BoundaryPlan => {
  const beside = role === 'gateway' ? direct.filter((block) => !podCidrs.includes(block)) : [];
  const ofOthers = manageCni ? [] : podCidrs;
  return {
    ownPods: manageCni ? podCidrs : masquerade.sources,
    exits: [...beside, ...ofOthers],
    entries: [...beside, ...ofOthers],
  };
};

export const nodePlanV1: z.ZodType<NodePlan> = fields
  .extend({ boundary: boundary.optional() })
  .transform((plan) => ({ ...plan, boundary: plan.boundary ?? boundaryOf(plan) }));
