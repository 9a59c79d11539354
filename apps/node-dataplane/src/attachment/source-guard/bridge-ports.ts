import type { Link, RouteSocket } from '@unbounded/netlink';
import type { Problem } from '@unbounded/topology';
import { POD_BRIDGE } from '../pod-bridge.ts';
import type { PodAttachment, PodRegistry } from '../pods.ts';
import { type PodPort, podPort } from './pod-port.ts';

/** Which ports of the bridge belong to which pods, as the registry and the kernel have it. */

/** A plug-in makes the port a moment before the agent hears of the pod. */
const STRANGE_AFTER_MS = 10_000;

export interface BridgePorts {
  /** By the pod's key; pods whose port is gone are left out. */
  readonly ports: ReadonlyMap<PodAttachment, PodPort>;
  readonly problems: readonly Problem[];
}

const nameOf = ({ namespace, name }: PodAttachment): string => `${namespace}/${name}`;

const unguarded = (causes: ReadonlyMap<PodAttachment, string>): Problem[] =>
  causes.size === 0
    ? []
    : [
        {
          reason: 'PodNotGuarded',
          message: `pods that may send with any MAC and address: ${[...causes].map(([pod, cause]) => `${nameOf(pod)} (${cause})`).join(', ')}; delete them: those that follow are guarded`,
        },
      ];

const shared = (ports: ReadonlyMap<PodAttachment, PodPort>, bridge: Link | undefined): Problem[] => {
  const byMac = new Map<string, string[]>();
  for (const [pod, { mac }] of ports) byMac.set(mac, [...(byMac.get(mac) ?? []), nameOf(pod)]);
  return [...byMac].flatMap(([mac, names]): Problem[] =>
    names.length > 1 || mac === bridge?.mac
      ? [
          {
            reason: 'PodMACNotUnique',
            message: `${names.join(', ')}: MAC ${mac} is also that of ${mac === bridge?.mac ? POD_BRIDGE : 'each other'}; one of them took it before pods were guarded: delete them`,
          },
        ]
      : [],
  );
};

/** Finds the ports; MACs that nobody recorded are read once and then kept in the registry. */
export const createBridgePorts = (net: RouteSocket, pods: PodRegistry, now = () => performance.now()) => {
  const seenSince = new Map<number, number>();

  const strangers = (links: readonly Link[], bridge: Link | undefined, known: ReadonlySet<number>): Problem[] => {
    const there = links.filter(({ master, index }) => bridge && master === bridge.index && !known.has(index));
    for (const index of seenSince.keys()) if (!there.some((link) => link.index === index)) seenSince.delete(index);
    for (const { index } of there) if (!seenSince.has(index)) seenSince.set(index, now());
    const strange = there.filter(({ index }) => now() - seenSince.get(index)! >= STRANGE_AFTER_MS);
    if (strange.length === 0) return [];
    const names = strange.map(({ name }) => name).join(', ');
    return [
      {
        reason: 'UnknownBridgePort',
        message: `ports of ${POD_BRIDGE} that belong to no registered pod, so that what is behind them may send with any MAC and address: ${names}; delete the pod behind each, or the device`,
      },
    ];
  };

  return {
    async find(): Promise<BridgePorts> {
      const links = await net.links.list();
      const byName = new Map(links.map((link) => [link.name, link]));
      const bridge = byName.get(POD_BRIDGE);
      const ports = new Map<PodAttachment, PodPort>();
      const causes = new Map<PodAttachment, string>();
      for (const pod of pods.list()) {
        const hostEnd = pod.hostVeth === undefined ? undefined : byName.get(pod.hostVeth);
        if (pod.hostVeth === undefined) causes.set(pod, 'its interface on the node is not known');
        if (!hostEnd) continue;
        try {
          const port = await podPort(net, pod, hostEnd);
          ports.set(pod, port);
          if (pod.mac === undefined) pods.add({ ...pod, mac: port.mac });
        } catch (error) {
          causes.set(pod, (error as Error).message);
        }
      }
      const known = new Set([...ports.values()].map(({ interfaceIndex }) => interfaceIndex));
      return { ports, problems: [...unguarded(causes), ...shared(ports, bridge), ...strangers(links, bridge, known)] };
    },
  };
};
