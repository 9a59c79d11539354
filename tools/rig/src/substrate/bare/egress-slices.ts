import type { EgressIPPool, EgressNodeSlice, StaticEgressIP } from '@unbounded/crds';
import { GROUP_VERSION } from '@unbounded/crds';
import { planEgress } from '@unbounded/egress';
import { parseAddress, parsePrefix } from '@unbounded/ip';
import { PROBES } from '../../checks/test-pod.ts';
import type { Pod } from '../../checks/test-pod.ts';
import { labelsOf } from '../../features/features.ts';
import { familyOf, PLANS } from '../../layout/addresses.ts';
import type { LabLayout, LabNode } from '../../layout/layout.ts';

/** What the controller of egress addresses would write for the pods that there are: the same planner, once. */

const NAMESPACE = 'default';
/** Rules and pools stay as they are while such a lab is up: when an owner became one is of no interest. */
const NOW = '2026-01-01T00:00:00Z';

/** As the lab's pods have them in a cluster. */
const labelsOfPod = ({ name }: Pod): Record<string, string> => ({
  app: 'probe',
  probe: PROBES.find((probe) => name.startsWith(probe)) ?? '',
});

const podOf = (pod: Pod) => ({
  ...{ uid: pod.name, namespace: NAMESPACE, name: pod.name, node: pod.node, labels: labelsOfPod(pod) },
  ...{ addresses: pod.ips.map(parseAddress), isHostNetwork: false, isFinished: false },
});

const nodeOf = (layout: LabLayout, node: LabNode) => ({
  ...{ name: node.name, uid: node.name, labels: labelsOf(layout, node), isAlive: true, isFenced: false },
  addresses: [...node.internalIps, ...(node.external?.ips ?? [])].map(parseAddress),
  podBlocks: (layout.sites.find(({ name }) => name === node.site)?.podPools ?? []).map(parsePrefix),
});

const sliceOf = (spec: EgressNodeSlice['spec'], status?: EgressNodeSlice['status']): EgressNodeSlice => ({
  apiVersion: GROUP_VERSION,
  kind: 'EgressNodeSlice',
  metadata: { name: `${spec.nodeName}-${spec.index}`, generation: 1 },
  spec,
  ...(status && { status }),
});

/** The networks that the agent of a node would report. */
const reportOf = (node: LabNode): EgressNodeSlice => {
  const cidrs = node.external?.by === 'interface' ? node.external.ips.map((ip) => PLANS[familyOf(ip)].wan) : [];
  const subnets = cidrs.map((cidr) => ({ interface: 'eth1', cidr }));
  return sliceOf({ nodeName: node.name, nodeUID: node.name, index: 0 }, { subnets });
};

type Applied = { readonly kind: string };
const ofKind = <T extends Applied>(objects: readonly Applied[], kind: T['kind']): T[] =>
  objects.filter((object): object is T => object.kind === kind);

/** @param objects that a person applies */
export const egressSlicesOf = (
  layout: LabLayout,
  objects: readonly Applied[],
  pods: readonly Pod[],
): EgressNodeSlice[] => {
  const rules = ofKind<StaticEgressIP>(objects, 'StaticEgressIP');
  if (rules.length === 0) return [];
  const { slices } = planEgress({
    rules: rules.map((rule) => ({ ...rule, metadata: { ...rule.metadata, namespace: NAMESPACE } })),
    pools: ofKind<EgressIPPool>(objects, 'EgressIPPool'),
    clusterRules: [],
    slices: layout.nodes.map(reportOf),
    nodes: layout.nodes.map((node) => nodeOf(layout, node)),
    formerGrants: [],
    pods: pods.map(podOf),
    services: [],
    namespaces: [{ name: NAMESPACE, labels: {} }],
    cluster: { pods: layout.sites.flatMap(({ podPools }) => podPools.map(parsePrefix)), services: [] },
    claims: [],
    now: NOW,
  });
  return [...slices.values()].map((spec) => sliceOf(spec));
};
