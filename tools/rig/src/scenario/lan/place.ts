import type { NetworkEndpoint } from '@unbounded/crds';
import type { Pod } from '../../checks/test-pod.ts';
import { kubectl } from '../../kubernetes/control-plane.ts';
import type { LabLayout } from '../../layout/layout.ts';
import { podOn } from '../scenario.ts';

/** Test pods by their addresses on the LAN. */

export const endpointsOf = async (layout: LabLayout): Promise<readonly NetworkEndpoint[]> => {
  const printed = await kubectl(layout, ['get', 'networkendpoints', '--all-namespaces', '-o', 'json']);
  return (JSON.parse(printed) as { readonly items: readonly NetworkEndpoint[] }).items;
};

/** A pod of the node, and where others find it. */
export interface OnLan {
  readonly pod: Pod;
  readonly ipv4: string;
  readonly ipv6: string;
}

export const onLan = async (layout: LabLayout, node: string): Promise<OnLan> => {
  const pod = await podOn(layout, node);
  const endpoint = (await endpointsOf(layout)).find(({ spec }) => spec.pod === pod.name);
  const [ipv4, ipv6] = [false, true].map((isIpv6) =>
    endpoint?.spec.addresses.find((address) => address.includes(':') === isIpv6),
  );
  if (ipv4 === undefined || ipv6 === undefined) throw new Error(`pod ${pod.name} has no addresses on the LAN`);
  return { pod, ipv4, ipv6 };
};
