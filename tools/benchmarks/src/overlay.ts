import type { LabLayout, LabNode } from '@unbounded/rig/layout';
import { probePods } from '@unbounded/rig/verify';
import { type End, type Path, vxlanByHand, wireguardByHand } from './by-hand.ts';
import { enterPod, METHOD, mtuAt, printComparison, runningLab } from './paths.ts';

/** Compares pods over our network with the same path made by hand, in turns on the same nodes. See ../README.md. */

/** Two pods of the lab. */
const ourPath = async (layout: LabLayout, nodes: readonly LabNode[]): Promise<End[]> => {
  const pods = await probePods(layout);
  return nodes.map((node) => {
    const pod = pods.find((candidate) => candidate.node === node.name);
    if (!pod) throw new Error(`no test pod on ${node.name}: is the lab up and settled (tools/lab verify)?`);
    return { enter: enterPod(pod.ip), ip: pod.ip };
  });
};

/** A pair of nodes, and how an administrator would join them. */
interface Comparison {
  readonly title: string;
  readonly nodes: readonly [LabNode, LabNode];
  readonly byHand: (nodes: readonly [LabNode, LabNode], mtu: number) => Promise<Path>;
}

const comparisonsOf = (layout: LabLayout): Comparison[] => {
  const [near, far] = layout.sites.map(({ nodes }) => nodes.find(({ role }) => role === 'gateway'));
  const [first, second] = layout.sites[0]!.nodes.filter(({ role }) => role === 'worker');
  const found: Comparison[] = [];
  if (first && second) found.push({ title: 'Within a site, by VXLAN', nodes: [first, second], byHand: vxlanByHand });
  if (near?.external && far?.external)
    found.push({
      title: 'Between gateways of two sites, by wireguard-go',
      nodes: [near, far],
      byHand: wireguardByHand,
    });
  if (found.length === 0)
    throw new Error('the lab has neither two workers in a site nor two gateways: tools/lab up makes both');
  return found;
};

const report = async (layout: LabLayout, { title, nodes, byHand }: Comparison): Promise<void> => {
  const ours = await ourPath(layout, nodes);
  const mtu = mtuAt(ours[0]!, 'eth0');
  await using path = await byHand(nodes, mtu);
  const named = `${title}: ${nodes.map(({ name }) => name).join(' to ')}, MTU ${mtu}`;
  await printComparison({ title: named, node: nodes[0] }, ours, path.ends);
};

const main = async (): Promise<void> => {
  const layout = runningLab();
  const { protocol } = layout.options;
  if (protocol !== 'Auto')
    throw new Error(`the lab's --protocol is ${protocol}: must be Auto, to which the reference corresponds`);
  console.log(METHOD);
  for (const comparison of comparisonsOf(layout)) await report(layout, comparison);
};

await main();
