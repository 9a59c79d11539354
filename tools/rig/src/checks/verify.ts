import { existsSync } from 'node:fs';
import { type Check, printResults, reachabilityTable, timed } from './checks.ts';
import { apiTarget, conditionChecks, kubectlChecks, serviceChecks } from '../substrate/cluster/checks.ts';
import { inNamespace, runAsync } from '../machine/command.ts';
import { type ConditionsSeen, lookAtConditions } from '../substrate/cluster/conditions.ts';
import { planChecks, sourceChecks } from '../substrate/bare/checks.ts';
import { podCount } from '../substrate/bare/pods.ts';
import { kernelProtocols } from '../machine/kernel.ts';
import { hasRelay, type LabLayout, namespaceOf } from '../layout/layout.ts';
import { readPlans } from './links.ts';
import { PROBES } from '../substrate/cluster/manifests.ts';
import { initPid } from '../node/node.ts';
import { binary } from '../machine/paths.ts';
import { probePods } from './probes.ts';
import type { Pod } from './test-pod.ts';
import { relayChecks } from '../features/relay/relay.ts';
import { type Ground, nodeMatrix, podMatrix, streamChecks, streamMebibytes } from './reach-checks.ts';

/** Shows that every pod reaches everything that it should: the lab's proof, in real packets. */

/** MTU of the pods' interface, asked on a node: all pods of the lab have the same. */
const deviceMtu = async (node: string): Promise<number> => {
  const links = JSON.parse(
    await runAsync([...inNamespace(namespaceOf(node)), 'ip', '-j', 'link', 'show', 'type', 'veth']),
  ) as { ifname: string; mtu: number }[];
  const mtu = links.find(({ ifname }) => ifname.startsWith('veth'))?.mtu;
  if (mtu === undefined) throw new Error(`node ${node} has no pod interface`);
  return mtu;
};

/** What pods send at most. A protocol that came after the pods may leave less than their interfaces have. */
const podMtu = async (layout: LabLayout): Promise<number> => {
  const mtu = await deviceMtu(layout.nodes[0]!.name);
  if (!layout.options.fabric) return mtu;
  return Math.min(mtu, ...readPlans(layout).map(({ mtuBytes }) => mtuBytes));
};

interface Seen {
  readonly checks: readonly Check[];
  /** Tunnel protocols that every node can do. */
  readonly able: ReadonlySet<string>;
}

const verifyCluster = async (ground: Ground): Promise<Seen> => {
  const { layout, pods } = ground;
  let seen: ConditionsSeen = { objects: 0, bad: [], able: new Set() };
  const checks = [
    ...(await timed('pod to pod, node, API server (ICMP, UDP, TCP)', () => podMatrix(ground, [apiTarget(layout)]))),
    ...(await timed('node to pod', () => nodeMatrix(ground))),
    ...(await timed('Services, NodePort, DNS, outside', () => serviceChecks(layout, pods))),
    ...(await timed('kubectl logs and exec', () => kubectlChecks(layout, pods))),
    ...(await timed(`streams of ${streamMebibytes(layout)} MiB`, () => streamChecks(ground))),
    ...(await timed('conditions of sites, pools, peerings, nodes', async () =>
      conditionChecks((seen = await lookAtConditions(layout))),
    )),
  ];
  return { checks, able: seen.able };
};

const verifyFabric = async (ground: Ground): Promise<Seen> => {
  const { layout } = ground;
  const checks = [
    ...(await timed('pod to pod and node (ICMP, UDP, TCP)', () => podMatrix(ground))),
    ...(await timed('node to pod', () => nodeMatrix(ground))),
    ...(await timed('sources kept, outside', () => sourceChecks(ground))),
    ...(await timed(`streams of ${streamMebibytes(layout)} MiB`, () => streamChecks(ground))),
    ...(await timed('problems in plans', async () => planChecks(layout))),
  ];
  return { checks, able: new Set(kernelProtocols()) };
};

const countCheck = (layout: LabLayout, pods: readonly Pod[]): Check => {
  const expected = layout.options.fabric ? podCount(layout) : layout.nodes.length * PROBES.length;
  return {
    from: layout.options.fabric ? 'lab' : 'kubernetes',
    to: 'test pods',
    what: `${expected} pods with an address`,
    ok: pods.length === expected,
    error: `${pods.length} there are`,
  };
};

const LEGEND = 'rows send, columns answer: · everything passed, 2! two checks failed';

/** Runs every check, prints the matrix and what failed. Returns whether all passed. */
export const verify = async (layout: LabLayout): Promise<boolean> => {
  const start = Date.now();
  if (!existsSync(binary('probe'))) throw new Error(`${binary('probe')} is missing: run tools/setup lab`);
  initPid(layout.nodes[0]!.name); // a clear error when there is no lab
  const pods = await probePods(layout);
  const mtu = await podMtu(layout);
  console.log(`${pods.length} test pods on ${layout.nodes.length} nodes, pod MTU ${mtu}`);
  const seen = await (layout.options.fabric ? verifyFabric : verifyCluster)({ layout, pods, mtu });
  const checks = [countCheck(layout, pods), ...seen.checks, ...(hasRelay(layout) ? relayChecks(layout) : [])];
  console.log(`\n${reachabilityTable(layout, pods, checks)}\n${LEGEND}\n`);
  printResults(layout, checks, seen.able);
  const failures = checks.filter(({ ok }) => !ok);
  console.log(
    `${checks.length - failures.length} passed, ${failures.length} failed in ${((Date.now() - start) / 1000).toFixed(0)} s`,
  );
  return failures.length === 0;
};

export { probePods };
