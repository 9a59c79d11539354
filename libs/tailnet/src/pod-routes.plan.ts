import { containsPrefix, formatPrefix, overlaps, type Prefix, parsePrefix, withoutCovered } from '@unbounded/ip';

/**
 * How packets of a pod are routed that is a device. The control server has no say in it: neither the routes that it sends nor the
 * addresses of peers change where packets go. Everything of the cluster goes by the pod's own interface, and of the rest only what
 * is in the tailnet's prefixes goes by the device.
 */

/** Addresses that a tailnet gives to its devices: shared address space (RFC 6598), and its own block of RFC 4193. */
export const TAILNET_PREFIXES: readonly Prefix[] = ['100.64.0.0/10', 'fd7a:115c:a1e0::/48'].map(parsePrefix);

/** In the pod's network namespace; nobody else has rules there, unless the pod itself may make them. */
export const POD_ROUTE_TABLE = 5252;
/** Before main (32766), and before those of a tailscaled that the pod brings along (5210 to 5270). */
const POD_RULE_PRIORITY = 5200;

/** Packets to the prefix are looked up in {@link POD_ROUTE_TABLE}, and where that throws them, in the rules that follow. */
interface PodRule {
  readonly priority: number;
  readonly to: Prefix;
  readonly table: number;
}

/**
 * device: by the device. unreachable: what is left of the prefix when there is no device; it must not leave by another
 * interface. throw: not by this table (rtnetlink(7), RTN_THROW).
 */
interface PodRoute {
  readonly to: Prefix;
  readonly kind: 'device' | 'unreachable' | 'throw';
  readonly metric: number;
}

const [DEVICE_METRIC, UNREACHABLE_METRIC] = [1, 4096] as const;

export interface PodRoutes {
  readonly rules: readonly PodRule[];
  readonly routes: readonly PodRoute[];
  /** Prefixes of the tailnet of which the cluster has all or a part: devices with such addresses are not reached from the pod. */
  readonly overlaps: readonly TailnetOverlap[];
}

interface TailnetOverlap {
  readonly tailnet: Prefix;
  /** Of the cluster. */
  readonly cluster: Prefix;
  readonly message: string;
}

const overlapOf = (tailnet: Prefix, cluster: Prefix): TailnetOverlap => ({
  tailnet,
  cluster,
  message: `${formatPrefix(cluster)} is in use in the cluster, and the tailnet gives out addresses of ${formatPrefix(tailnet)}: pods reach no device there; let the control server give out other addresses`,
});

/** The part of the cluster's block in the tailnet's prefix: one holds the other. */
const commonPart = (tailnet: Prefix, cluster: Prefix): Prefix => (containsPrefix(cluster, tailnet) ? tailnet : cluster);

export interface PodRoutesInput {
  /** Blocks of pods, Services and nodes, and addresses of DNS servers, of the whole cluster. */
  readonly cluster: readonly Prefix[];
  /** Of both families, whatever addresses the pod has: what is for the tailnet leaves by the device or not at all. */
  readonly tailnet?: readonly Prefix[];
}

export const planPodRoutes = ({ cluster, tailnet = TAILNET_PREFIXES }: PodRoutesInput): PodRoutes => {
  const found = tailnet.flatMap((prefix) =>
    withoutCovered(cluster.filter((block) => overlaps(block, prefix))).map((block) => overlapOf(prefix, block)),
  );
  const kept = found.map((one): PodRoute => ({ to: commonPart(one.tailnet, one.cluster), kind: 'throw', metric: 0 }));
  const wholly = (prefix: Prefix): boolean => kept.some(({ to }) => containsPrefix(to, prefix));
  return {
    rules: tailnet.map((to) => ({ priority: POD_RULE_PRIORITY, to, table: POD_ROUTE_TABLE })),
    routes: [
      ...kept,
      ...tailnet
        .filter((prefix) => !wholly(prefix))
        .flatMap((to): PodRoute[] => [
          { to, kind: 'device', metric: DEVICE_METRIC },
          { to, kind: 'unreachable', metric: UNREACHABLE_METRIC },
        ]),
    ],
    overlaps: found,
  };
};
