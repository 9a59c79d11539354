import { timed } from '../../checks/checks.ts';
import { readPlans } from '../../checks/links.ts';
import { nodeMatrix, podMatrix, streamChecks } from '../../checks/reach-checks.ts';
import { kernelProtocols } from '../../machine/kernel.ts';
import { startNode } from '../../node/node.ts';
import type { Substrate } from '../substrate.ts';
import { planChecks, sourceChecks } from './checks.ts';
import { egressSlices, objectSource } from './objects.ts';
import { podCount, podsOf, probeCommand } from './pods.ts';
import { nodeApps, up } from './up.ts';

/**
 * A lab without Kubernetes: objects from files, and network namespaces as pods. It runs wherever network namespaces do,
 * so in the virtual machine too.
 */
export const bare: Substrate = {
  hasKubernetes: false,
  up,
  startNode: (layout, { name }) => startNode(layout, name),
  nodeApps,
  objectSource,
  programs: { ofCluster: [], ofNode: [], stoppable: [] },
  daemons: () => [],
  egressSlices: (layout) => Promise.resolve(egressSlices(layout)),
  pods: {
    list: (layout) => Promise.resolve(podsOf(layout)),
    expected: (layout) => ({ count: podCount(layout), from: 'lab' }),
    probeCommand: (_, pod) => probeCommand(pod),
    /** A protocol that came after the pods may leave less than their interfaces have. */
    mtu: (layout, deviceMtu) => Math.min(deviceMtu, ...readPlans(layout).map(({ mtuBytes }) => mtuBytes)),
  },
  proof: {
    nodePort: 9998, // our agent
    streamMebibytes: 1, // an emulated machine or a bad link carries it
    async checks(ground) {
      const { layout, streamMebibytes } = ground;
      const checks = [
        ...(await timed('pod to pod and node (ICMP, UDP, TCP)', () => podMatrix(ground))),
        ...(await timed('node to pod and node (ICMP, UDP, TCP)', () => nodeMatrix(ground))),
        ...(await timed('sources kept, outside', () => sourceChecks(ground))),
        ...(await timed(`streams of ${streamMebibytes} MiB`, () => streamChecks(ground))),
        ...(await timed('problems in plans', async () => planChecks(layout))),
      ];
      return { checks, able: new Set(kernelProtocols()) };
    },
  },
  hints: { verify: 'every pod to every pod, node and the outside world', more: [], status: () => [] },
};
