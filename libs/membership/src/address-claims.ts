import { annotations } from '@unbounded/crds';

import { ageOf } from './age.ts';
import { type Claim, isStronger, strongestOf } from './claims.ts';
import { withAddresses } from './confinement.ts';
import { annotationField } from './node-facts.ts';
import type { NodeProblem } from './node-problem.ts';
import type { SettledNode } from './settled-node.ts';

/**
 * Who has an address. Internal and external ones are settled together: peers send to both. An administrator's comes first, then
 * InternalIPs inside their own Site, then what kubelets and DNS servers say of gateways.
 */
interface AddressClaim extends Claim {
  readonly kind: 'internal' | 'external';
  /** By the annotation, as an address or by a DNS name: nodes that an administrator gave one address share it. */
  readonly isAnnotated: boolean;
}

type Entry = readonly [address: string, claim: AddressClaim];

/** Those of a gateway that is in no Site are listed ones, but lie in no range of nodes: they count as its external ones do. */
const internalClaims = ({ facts, site, record }: SettledNode): Entry[] =>
  facts.internalIPs.map((text) => {
    const strength = site ? (record.internalIPs.has(text) ? 1 : 2) : 3;
    return [text, { node: facts.name, age: ageOf(facts), strength, kind: 'internal', isAnnotated: false }];
  });

/** Nothing uses external addresses of nodes that no pool selects. */
const externalClaims = ({ facts, isGateway, record }: SettledNode): Entry[] => {
  if (!isGateway) return [];
  // Who does not resolve names takes the addresses that the pool's status lists for them.
  const resolved = facts.externalNames.length > 0 ? record.externalIPs : [];
  return [...new Set([...facts.externalIPs, ...resolved])].map((text) => {
    const isLiteral = facts.literalExternalIPs.includes(text);
    const strength = isLiteral ? 0 : record.externalIPs.includes(text) ? 3 : 4;
    const { name, isExternalAnnotated } = facts;
    return [text, { node: name, age: ageOf(facts), strength, kind: 'external', isAnnotated: isExternalAnnotated }];
  });
};

interface Loss {
  readonly text: string;
  readonly claim: AddressClaim;
  readonly winner: AddressClaim;
}

const whyLost = ({ claim, winner }: Loss): string => {
  if (winner.strength === 0) return `is an external address of node ${winner.node} by its annotation`;
  if (winner.kind === 'internal' && claim.kind === 'external') return `is the InternalIP of node ${winner.node}`;
  if (winner.strength === claim.strength) return `is that of node ${winner.node}, which is older`;
  return `is that of node ${winner.node}, which was listed with it first`;
};

const remedyOf = ({ claim, winner }: Loss): string => {
  const annotation = `the annotation ${annotations.externalAddress}`;
  if (claim.isAnnotated) return `correct the DNS zone, or write the address itself into ${annotation}`;
  if (claim.kind === 'external') return `an external address that nodes share goes into ${annotation} of each`;
  if (winner.strength === 0) return `correct the kubelet's --node-ip, or ${annotation} of node ${winner.node}`;
  return `correct the kubelet's --node-ip, or delete the Node ${winner.node} if it is gone`;
};

const problemOf = (loss: Loss): NodeProblem => ({
  reason: 'AddressTaken',
  field: loss.claim.isAnnotated ? annotationField(annotations.externalAddress) : 'status.addresses',
  message: `the address ${loss.text} ${whyLost(loss)}: ${remedyOf(loss)}`,
});

/** Takes from each node the addresses that are another's. */
export const createAddressSettlement = (claimants: readonly SettledNode[]): ((node: SettledNode) => SettledNode) => {
  const entries = claimants.flatMap((node) => [...internalClaims(node), ...externalClaims(node)]);
  const holders = strongestOf(entries);
  const unannotated = strongestOf(entries.filter(([, { isAnnotated }]) => !isAnnotated));
  const lossOf = ([text, claim]: Entry): Loss[] => {
    const winner = (claim.isAnnotated ? unannotated : holders).get(text);
    if (!winner || winner.node === claim.node || !isStronger(winner, claim)) return [];
    return [{ text, claim, winner }];
  };
  return (node) => {
    const { facts, problems } = node;
    const internal = internalClaims(node).flatMap(lossOf);
    const external = externalClaims(node)
      .filter(([text]) => facts.externalIPs.includes(text))
      .flatMap(lossOf);
    if (internal.length + external.length === 0) return node;
    const lostInternal = new Set(internal.map(({ text }) => text));
    const lostExternal = new Set(external.map(({ text }) => text));
    // An address that a node states as both is told once.
    const told = [...internal, ...external.filter(({ text }) => !lostInternal.has(text))];
    return {
      ...node,
      facts: {
        ...withAddresses(facts, (text) => !lostInternal.has(text)),
        externalIPs: facts.externalIPs.filter((text) => !lostExternal.has(text)),
      },
      problems: [...problems, ...told.map(problemOf)],
    };
  };
};
