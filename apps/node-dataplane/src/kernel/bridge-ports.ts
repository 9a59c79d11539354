import { existsSync, writeFileSync } from 'node:fs';
import type { Link, RouteSocket } from '@unbounded/netlink';
import type { Problem } from '@unbounded/topology';
import type { PodAttachment } from '../attachment/pods.ts';

/**
 * The pods' ends at the bridge. The CNI plugin attaches each once, when the pod is made: who recreates the bridge, or finds
 * a port taken off, puts it back, for nobody else does.
 */

/** As the CNI configuration asks for: a pod may reach itself by a Service's address. */
const setHairpin = (veth: string): void => writeFileSync(`/sys/class/net/${veth}/brport/hairpin_mode`, '1');

/** Why the pod's end is not at the bridge afterwards; undefined: it is. */
const attach = async (net: RouteSocket, bridge: Link, veth: Link | undefined): Promise<string | undefined> => {
  if (!veth) return 'its interface is gone';
  if (veth.master === bridge.index) return undefined;
  if (veth.kind?.kind !== 'veth') return `${veth.name} is no veth`;
  if (veth.master !== undefined) return `${veth.name} is a port of another device`;
  try {
    await net.links.modify(veth.index, { master: bridge.index });
    if (!veth.up) await net.links.modify(veth.index, { up: true });
    setHairpin(veth.name);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
};

const SHOWN = 5;

/** Attaches the pods that are known and whose network is there; those that cannot be are reported. */
export const ensurePorts = async (
  net: RouteSocket,
  bridge: Link,
  pods: readonly PodAttachment[],
): Promise<{ readonly attached: readonly string[]; readonly problems: readonly Problem[] }> => {
  const links = new Map((await net.links.list()).map((link) => [link.name, link]));
  const attached: string[] = [];
  const detached: string[] = [];
  for (const pod of pods.filter(({ netns, hostVeth }) => hostVeth !== undefined && existsSync(netns))) {
    const veth = links.get(pod.hostVeth!);
    const why = await attach(net, bridge, veth);
    const name = `${pod.namespace}/${pod.name}`;
    if (why !== undefined) detached.push(`${name} (${why})`);
    else if (veth!.master !== bridge.index) attached.push(name);
  }
  if (detached.length === 0) return { attached, problems: [] };
  const shown = [...detached.slice(0, SHOWN), ...(detached.length > SHOWN ? [`${detached.length - SHOWN} more`] : [])];
  const message = `${detached.length} of the node's pods are not attached to ${bridge.name} and have no network: ${shown.join(', ')}; delete these pods, so that they are created anew`;
  return { attached, problems: [{ reason: 'PodsDetached', message }] };
};

/** Pods of a bridge that no plan has any more; they would lose their network with it. */
export const bridgeInUse = (bridge: string, ports: number): Problem => ({
  reason: 'BridgeInUse',
  message: `bridge ${bridge} has ${ports} ports and is kept, although the Site has manageCniPlugin: false: drain the node, or set manageCniPlugin: true again`,
});
