import { existsSync } from 'node:fs';
import { type Check, printResults, reachabilityTable } from '../checks/checks.ts';
import { openNodeEchoes } from '../checks/node-echo.ts';
import type { Ground } from '../checks/reach-checks.ts';
import type { Pod } from '../checks/test-pod.ts';
import { FEATURES } from '../features/features.ts';
import { type LabLayout, namespaceOf } from '../layout/layout.ts';
import { inNamespace, runAsync } from '../machine/command.ts';
import { binary } from '../machine/paths.ts';
import { initPid } from '../node/node.ts';
import { inPod, probePods } from '../substrate/probes.ts';
import { substrateOf } from '../substrate/substrates.ts';

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

const countCheck = (layout: LabLayout, pods: readonly Pod[]): Check => {
  const { count, from } = substrateOf(layout).pods.expected(layout);
  return {
    from,
    to: 'test pods',
    what: `${count} pods with an address`,
    ok: pods.length === count,
    error: `${pods.length} there are`,
  };
};

const LEGEND = 'rows send, columns answer: · everything passed, 2! two checks failed';

/** Runs every check, prints the matrix and what failed. Returns whether all passed. */
export const verify = async (
  layout: LabLayout,
  { nodesAnswerUdp = true }: Partial<Pick<Ground, 'nodesAnswerUdp'>> = {},
): Promise<boolean> => {
  const start = Date.now();
  if (!existsSync(binary('probe'))) throw new Error(`${binary('probe')} is missing: run tools/setup lab`);
  initPid(layout.nodes[0]!.name); // a clear error when there is no lab
  const pods = await probePods(layout);
  const { pods: access, proof, egressSlices } = substrateOf(layout);
  const mtu = access.mtu(layout, await deviceMtu(layout.nodes[0]!.name));
  console.log(`${pods.length} test pods on ${layout.nodes.length} nodes, pod MTU ${mtu}`);
  using _echoes = await openNodeEchoes(layout);
  const ground: Ground = {
    ...{ layout, pods, mtu, nodesAnswerUdp, nodePort: proof.nodePort, streamMebibytes: proof.streamMebibytes },
    inPod: (pod, args, input) => inPod(layout, pod, args, input),
    egressSlices: () => egressSlices(layout),
  };
  const seen = await proof.checks(ground);
  const ofFeatures = await Promise.all(FEATURES.map((feature) => feature.checks(ground)));
  const checks = [countCheck(layout, pods), ...seen.checks, ...ofFeatures.flat()];
  console.log(`\n${reachabilityTable(layout, pods, checks)}\n${LEGEND}\n`);
  printResults(layout, checks, seen.able);
  const failures = checks.filter(({ ok }) => !ok);
  console.log(
    `${checks.length - failures.length} passed, ${failures.length} failed in ${((Date.now() - start) / 1000).toFixed(0)} s`,
  );
  return failures.length === 0;
};

export { probePods };
