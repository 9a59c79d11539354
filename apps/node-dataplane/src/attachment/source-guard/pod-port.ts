import type { Link, RouteSocket } from '@unbounded/netlink';
import type { PodAttachment } from '../pods.ts';

/** The bridge port behind which a pod is, and what may come in there. */
export interface PodPort {
  readonly interfaceIndex: number;
  readonly mac: string;
  /** Without prefix length; both families. */
  readonly addresses: readonly string[];
}

/** Why a pod's port cannot be told. */
export class PodPortError extends Error {
  override readonly name = 'PodPortError';
}

const NETNS_NOT_ASSIGNED = -1;

/**
 * MAC of the pod's end of the pair, read in the pod's namespace. The pod may have changed it, so this is for pods whose MAC
 * nobody recorded when they were attached. @throws PodPortError
 */
const readPodMac = async (net: RouteSocket, hostEnd: Link): Promise<string> => {
  const { parent, parentNetnsId: netnsId = NETNS_NOT_ASSIGNED, name } = hostEnd;
  if (hostEnd.kind?.kind !== 'veth' || parent === undefined || netnsId === NETNS_NOT_ASSIGNED)
    throw new PodPortError(`${name} is no veth whose other end is in another namespace`);
  const podEnd = await net.links.get(parent, { netnsId });
  // The indexes of two namespaces are independent: the other end must lead back here.
  if (podEnd?.mac === undefined || podEnd.parent !== hostEnd.index)
    throw new PodPortError(`the other end of ${name} cannot be read`);
  return podEnd.mac;
};

/** The port of a pod whose host end is this link. @throws PodPortError */
export const podPort = async (net: RouteSocket, pod: PodAttachment, hostEnd: Link): Promise<PodPort> => ({
  interfaceIndex: hostEnd.index,
  mac: pod.mac ?? (await readPodMac(net, hostEnd)),
  addresses: pod.addresses.map((address) => address.split('/')[0]!),
});
