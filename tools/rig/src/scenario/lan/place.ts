import type { NetworkEndpoint } from '@unbounded/crds';
import type { Check } from '../../checks/checks.ts';
import type { Pod } from '../../checks/test-pod.ts';
import { kubectl } from '../../kubernetes/control-plane.ts';
import type { LabLayout } from '../../layout/layout.ts';
import { lanChecks } from '../../features/lan/checks.ts';
import { inPod, probePods } from '../../substrate/probes.ts';
import { timeUntil, tryInPod } from '../scenario.ts';

/** Test pods by their addresses on the LAN. */

export const endpointsOf = async (layout: LabLayout): Promise<readonly NetworkEndpoint[]> => {
  const printed = await kubectl(layout, ['get', 'networkendpoints', '--all-namespaces', '-o', 'json']);
  return (JSON.parse(printed) as { readonly items: readonly NetworkEndpoint[] }).items;
};

/** What one test pod does not reach of another by the LAN. */
export const problemsOn = async (layout: LabLayout): Promise<readonly Check[]> => {
  const pods = await probePods(layout);
  const checks = await lanChecks({ layout, pods, inPod: (pod, args, input) => inPod(layout, pod, args, input) });
  if (checks.length < pods.length * (pods.length - 1))
    throw new Error(`${checks.length} checks among ${pods.length} pods`);
  return checks.filter(({ ok }) => !ok);
};

/** A pod of the node, and where others find it. */
export interface OnLan {
  readonly pod: Pod;
  readonly ipv4: string;
  readonly ipv6: string;
  readonly mac: string;
}

const placeOf = (pod: Pod, endpoint: NetworkEndpoint | undefined): OnLan => {
  const [ipv4, ipv6] = [false, true].map((isIpv6) =>
    endpoint?.spec.addresses.find((address) => address.includes(':') === isIpv6),
  );
  if (!endpoint || ipv4 === undefined || ipv6 === undefined)
    throw new Error(`pod ${pod.name} has no addresses on the LAN`);
  return { pod, ipv4, ipv6, mac: endpoint.spec.mac };
};

/** All test pods of the node. */
export const allOnLan = async (layout: LabLayout, node: string): Promise<readonly OnLan[]> => {
  const endpoints = await endpointsOf(layout);
  const pods = (await probePods(layout)).filter((pod) => pod.node === node);
  return pods.map((pod) =>
    placeOf(
      pod,
      endpoints.find(({ spec }) => spec.pod === pod.name),
    ),
  );
};

export const onLan = async (layout: LabLayout, node: string): Promise<OnLan> => {
  const [first] = await allOnLan(layout, node);
  if (!first) throw new Error(`no test pod on ${node}`);
  return first;
};

/** An ADD ends when its own node has the pod; other nodes have it a moment later. */
export const answersTo = (pod: Pod, address: string): Promise<number> =>
  timeUntil(`${address} answers`, () => tryInPod(pod, 'ping', '-c1', '-W1', address) !== undefined, 10_000);
