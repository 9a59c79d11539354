import { labels } from '@unbounded/crds';
import type { Deployment } from '@unbounded/kube';

/** On which nodes relays are to run. */

/** More would make the object large; relays need few. */
const MOST_NODES = 64;

export interface Placement {
  /** A node port leads to relays of its own node alone, a balancer to all. */
  readonly isByNodePort: boolean;
  /** Of the nodes on which relays are best: those that clients outside can call. */
  readonly nodes: readonly string[];
}

/** Names in the affinity that is ours; the other one an operator may have given to it. */
const namesIn = (deployment: Deployment | undefined, isByNodePort: boolean): string[] => {
  const {
    requiredDuringSchedulingIgnoredDuringExecution: required,
    preferredDuringSchedulingIgnoredDuringExecution: preferred,
  } = deployment?.spec?.template.spec?.affinity?.nodeAffinity ?? {};
  const terms = isByNodePort ? required?.nodeSelectorTerms : preferred?.map(({ preference }) => preference);
  return (terms ?? []).flatMap(({ matchFields = [] }) => matchFields.flatMap(({ values = [] }) => values));
};

/**
 * The nodes to name. Another affinity is another template: all relays start anew, and their clients move. So the names that `standing` has
 * stay while enough of them can be called, one for each replica; where a node port leads to them, while all can. They stay also when no node
 * can be called any more: other nodes would not be better.
 */
export const nodesToName = (
  { isByNodePort, nodes }: Placement,
  replicas: number,
  standing: Deployment | undefined,
): readonly string[] => {
  const named = namesIn(standing, isByNodePort);
  if (nodes.length === 0) return named;
  const callable = named.filter((name) => nodes.includes(name));
  const suffice = callable.length > 0 && callable.length >= Math.min(replicas, nodes.length);
  if (suffice && (!isByNodePort || callable.length === named.length)) return named;
  return nodes.toSorted().slice(0, MOST_NODES);
};

/** Behind a balancer every replica must reach every other: in one site that does not take the mesh. */
const besideEachOther = (relayLabels: Readonly<Record<string, string>>) => ({
  preferredDuringSchedulingIgnoredDuringExecution: [
    { weight: 100, podAffinityTerm: { topologyKey: labels.site, labelSelector: { matchLabels: relayLabels } } },
  ],
});

/**
 * Relays are best where they can be called: a node port leads nowhere else, a balancer may. Gateways are named, which takes a
 * term for each: their labels, that of the hostname too, other nodes could give themselves, and read the relay's Secrets.
 */
export const affinityOf = (
  { isByNodePort, nodes }: Placement,
  relayLabels: Readonly<Record<string, string>>,
): { affinity?: object } => {
  const named = nodes.map((name) => ({ matchFields: [{ key: 'metadata.name', operator: 'In', values: [name] }] }));
  const nodeAffinity = isByNodePort
    ? { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: named } }
    : {
        preferredDuringSchedulingIgnoredDuringExecution: named.map((preference) => ({ weight: 100, preference })),
      };
  const affinity = {
    ...(named.length > 0 && { nodeAffinity }),
    ...(!isByNodePort && { podAffinity: besideEachOther(relayLabels) }),
  };
  return Object.keys(affinity).length === 0 ? {} : { affinity };
};
