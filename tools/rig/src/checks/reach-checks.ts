import type { EgressNodeSlice } from '@unbounded/crds';
import { familyOf, hostOf } from '../layout/addresses.ts';
import { NODE_ECHO_PORT } from './node-echo.ts';
import { attempt, type Check, mapLimited, matrixChecks, type Target } from './checks.ts';
import type { LabLayout, LabNode } from '../layout/layout.ts';
import { isImpaired } from '../layout/options.ts';
import type { Pod } from './test-pod.ts';
import { inNodeNetwork } from './probe.ts';

/** Checks that every lab has: pods and nodes to pods and nodes, and streams. */

const ECHO_PORT = 9000;
const SINK_PORT = 9001;

const podTargets = (pod: Pod): Target[] =>
  pod.ips.map((address) => ({ name: pod.name, address, port: ECHO_PORT, checks: ['icmp', 'udp', 'tcp'] }));

/** A pod has the family of some of the node's addresses only. */
const nodeTargets = ({ layout, nodePort, nodesAnswerUdp }: Ground, node: LabNode): Target[] =>
  node.internalIps
    .filter((address) => layout.families.includes(familyOf(address)))
    .flatMap((address): Target[] => [
      { name: node.name, address, port: nodePort, checks: ['icmp', 'connect'] },
      ...(nodesAnswerUdp ? [{ name: node.name, address, port: NODE_ECHO_PORT, checks: ['udp' as const] }] : []),
    ]);

/** What every check of a lab needs to know. */
export interface Ground {
  readonly layout: LabLayout;
  readonly pods: readonly Pod[];
  /** Largest packet that pods send. */
  readonly mtu: number;
  /** TCP port that something listens on on every node. */
  readonly nodePort: number;
  /** From the address that was asked. Agents of earlier versions left the choice to the kernel, which takes another one. */
  readonly nodesAnswerUdp: boolean;
  readonly streamMebibytes: number;
  /** Runs the probe inside a pod. */
  readonly inPod: (pod: Pod, args: readonly string[], input?: string) => Promise<string>;
  /** What nodes are told about egress addresses. */
  readonly egressSlices: () => Promise<readonly EgressNodeSlice[]>;
}

/** Where links lose packets, two lost attempts of a thousand are no verdict either. */
const roundsOf = ({ options }: LabLayout): number => (isImpaired(options) ? 3 : 1);

/** @param more what else every pod is to reach */
export const podMatrix = (ground: Ground, more: readonly Target[] = []): Promise<Check[]> => {
  const { layout, pods, mtu, inPod } = ground;
  return mapLimited(pods, (pod) => {
    const targets = [
      ...pods.filter((other) => other !== pod).flatMap(podTargets),
      ...layout.nodes.flatMap((node) => nodeTargets(ground, node)),
      ...more,
    ];
    const probe = (input: string): Promise<string> => inPod(pod, ['matrix', String(mtu)], input);
    return matrixChecks({ from: pod.name, rounds: roundsOf(layout) }, targets, probe);
  }).then((lists) => lists.flat());
};

/** A node reaches itself, too, by each of its addresses. */
export const nodeMatrix = (ground: Ground): Promise<Check[]> => {
  const { layout, pods, mtu } = ground;
  const targets = [...pods.flatMap(podTargets), ...layout.nodes.flatMap((node) => nodeTargets(ground, node))];
  return mapLimited(layout.nodes, ({ name }) => {
    const probe = (input: string): Promise<string> => inNodeNetwork(name, ['matrix', String(mtu)], input);
    return matrixChecks({ from: name, rounds: roundsOf(layout) }, targets, probe);
  }).then((lists) => lists.flat());
};

type PathClass = 'same node' | 'same site' | 'cross-site';
const pathClass = (a: Pod, b: Pod): PathClass =>
  a.node === b.node ? 'same node' : a.site === b.site ? 'same site' : 'cross-site';

/** One pair of pods per class and direction. */
const streamPairs = (pods: readonly Pod[]): [Pod, Pod][] => {
  const pairs: [Pod, Pod][] = [];
  for (const wanted of ['same node', 'same site', 'cross-site'] as const) {
    // The two last nodes of a site are workers; gateways and the control plane come first in the order of names.
    for (const a of pods.toReversed()) {
      const b = pods.toReversed().find((other) => other !== a && pathClass(a, other) === wanted);
      if (!b) continue;
      pairs.push([a, b], [b, a]);
      break;
    }
  }
  return pairs;
};

type StreamGround = Pick<Ground, 'layout' | 'pods' | 'streamMebibytes' | 'inPod'>;

export const streamChecks = async ({ layout, pods, streamMebibytes, inPod }: StreamGround): Promise<Check[]> => {
  const checks: Check[] = [];
  const streams = streamPairs(pods).flatMap(([from, to]) => to.ips.map((ip) => ({ from, to, ip })));
  for (const { from, to, ip } of streams) {
    let speed = '';
    const family = layout.families.length > 1 ? ` IPv${familyOf(ip)}` : '';
    const check = await attempt(
      { from: from.name, to: to.name, what: `stream ${pathClass(from, to)}${family}` },
      async () => {
        const answer = JSON.parse(
          await inPod(from, ['stream', `${hostOf(ip)}:${SINK_PORT}`, String(streamMebibytes)]),
        ) as { megabitsPerSecond: number };
        speed = `${answer.megabitsPerSecond.toFixed(0)} Mbit/s`;
        return undefined;
      },
    );
    checks.push({ ...check, what: `${check.what} ${speed}`.trim() });
  }
  return checks;
};
