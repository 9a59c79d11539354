import type { EgressNodeSlice } from '@unbounded/crds';
import { nodeAppsOf } from '../../apps/agents.ts';
import { aggregatorDaemons } from '../../apps/aggregator.ts';
import { controllerDaemons } from '../../apps/controllers.ts';
import { AGGREGATOR, CONTROLLERS, NAMESPACE } from '../../apps/tokens.ts';
import { timed } from '../../checks/checks.ts';
import { nodeMatrix, podMatrix, streamChecks } from '../../checks/reach-checks.ts';
import { PROBES } from '../../checks/test-pod.ts';
import { kubectl, kubectlCommand } from '../../kubernetes/control-plane.ts';
import type { Substrate } from '../substrate.ts';
import { apiTarget, conditionChecks, kubectlChecks, serviceChecks } from './checks.ts';
import { type ConditionsSeen, lookAtConditions } from './conditions.ts';
import { startClusterNode } from './node.ts';
import { objectSource } from './object-source.ts';
import { podsOf, probeCommand } from './pods.ts';
import { up } from './up.ts';

const MACHINE_PROGRAMS = ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler', 'attendant'] as const;

/** A lab with real Kubernetes: control plane, kubelets, and objects from the API server. */
export const cluster: Substrate = {
  hasKubernetes: true,
  up,
  startNode: startClusterNode,
  nodeApps: nodeAppsOf,
  objectSource,
  programs: {
    ofCluster: [...CONTROLLERS, AGGREGATOR, ...MACHINE_PROGRAMS],
    ofNode: ['kubelet', 'containerd', 'kube-proxy'],
    stoppable: ['kube-apiserver', ...CONTROLLERS, AGGREGATOR],
  },
  daemons: (layout) => [
    ...MACHINE_PROGRAMS,
    ...(layout.options.agents === 'pods' ? [] : [...controllerDaemons(layout), ...aggregatorDaemons(layout)]),
  ],
  async egressSlices(layout) {
    const printed = await kubectl(layout, ['get', 'egressnodeslices', '-o', 'json']);
    return (JSON.parse(printed) as { readonly items: readonly EgressNodeSlice[] }).items;
  },
  pods: {
    list: podsOf,
    expected: ({ nodes }) => ({ count: nodes.length * PROBES.length, from: 'kubernetes' }),
    probeCommand,
    mtu: (_, deviceMtu) => deviceMtu,
  },
  proof: {
    nodePort: 10250, // kubelet
    streamMebibytes: 64, // enough to see a path's speed
    async checks(ground) {
      const { layout, streamMebibytes } = ground;
      let seen: ConditionsSeen = { objects: 0, bad: [], able: new Set() };
      const checks = [
        ...(await timed('pod to pod, node, API server (ICMP, UDP, TCP)', () => podMatrix(ground, [apiTarget(layout)]))),
        ...(await timed('node to pod and node (ICMP, UDP, TCP)', () => nodeMatrix(ground))),
        ...(await timed('Services, NodePort, DNS, outside', () => serviceChecks(ground))),
        ...(await timed('kubectl logs and exec', () => kubectlChecks(ground))),
        ...(await timed(`streams of ${streamMebibytes} MiB`, () => streamChecks(ground))),
        ...(await timed('conditions of sites, pools, peerings, nodes', async () =>
          conditionChecks((seen = await lookAtConditions(layout))),
        )),
      ];
      return { checks, able: seen.able };
    },
  },
  hints: {
    verify: 'every pod to every pod, node, Service and the outside world',
    dashboard: 'the live status of all nodes, at https://localhost:9443',
    more: ['kubectl get nodes,sites,gatewaypools -o wide'],
    status: (layout) => [
      [...kubectlCommand(layout), 'get', 'nodes', '-o', 'wide'],
      ...(layout.options.agents === 'pods'
        ? [[...kubectlCommand(layout), 'get', 'pods', '-n', NAMESPACE, '-o', 'wide']]
        : []),
    ],
  },
};
