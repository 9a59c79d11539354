import type { NetworkEndpoint } from '@unbounded/crds';
import { kubectl } from '@unbounded/rig/control-plane';
import type { LabLayout, LabNode } from '@unbounded/rig/layout';
import { probePods } from '@unbounded/rig/verify';
import { bridgeByHand, type End, type Path, seg6ByHand } from './by-hand.ts';
import { enterPod, METHOD, mtuAt, printComparison, runningLab } from './paths.ts';

/**
 * Compares a Network with a Linux bridge over VXLAN with static entries, and with the kernel's own SRv6, between two workers of a site. See
 * ../README.md.
 */

const INTERFACE = 'net1';

const REFERENCES: readonly (readonly [
  what: string,
  lay: (nodes: readonly [LabNode, LabNode], mtu: number) => Promise<Path>,
])[] = [
  ['a bridge and VXLAN with static entries', bridgeByHand],
  ['SRv6 of the kernel (l2encap.red, End.DX2), which routes and has no tunnel below it', seg6ByHand],
];

const addressesOn = async (layout: LabLayout, nodes: readonly LabNode[]): Promise<End[]> => {
  const pods = await probePods(layout);
  const { items } = JSON.parse(await kubectl(layout, ['get', 'networkendpoints', '-o', 'json'])) as {
    readonly items: readonly NetworkEndpoint[];
  };
  return nodes.map((node) => {
    const pod = pods.find((candidate) => candidate.node === node.name);
    const endpoint = items.find(({ spec }) => spec.pod === pod?.name);
    const ip = endpoint?.spec.addresses.find((address) => !address.includes(':'));
    if (!pod || ip === undefined) throw new Error(`no pod on ${node.name} is in a Network: run tools/lab up --lan`);
    return { enter: enterPod(pod.ip), ip };
  });
};

const main = async (): Promise<void> => {
  const layout = runningLab();
  const [first, second] = layout.sites[0]!.nodes.filter(({ role }) => role === 'worker');
  if (!first || !second) throw new Error('the first site has no two workers: tools/lab up --lan makes them');
  const ours = await addressesOn(layout, [first, second]);
  const mtu = mtuAt(ours[0]!, INTERFACE);
  console.log(METHOD);
  for (const [what, lay] of REFERENCES) {
    await using path = await lay([first, second], mtu);
    const title = `One LAN, by VXLAN: ${first.name} to ${second.name}, MTU ${mtu}; by hand: ${what}`;
    await printComparison({ title, node: first }, ours, path.ends);
  }
};

await main();
