import { DEVICES } from '@unbounded/config/ownership';
import { ADDRESSES, FAMILIES, type Host } from './egress-network.testdata.ts';
import type { EgressPlan, PodClass, PodRoute } from './plan/egress-plan.ts';
import { tunnelMtuBytes } from './plan/tunnel.plan.ts';

/** Plans of the worker and the gateway of egress-network.testdata.ts. */

type NodeName = 'worker' | 'gateway';
type EgressHost = 'first' | 'second';

const OVERLAY_MTU_BYTES = 1450;
const PEER = { worker: 'gateway', gateway: 'worker' } as const;
const overlayOf = (node: NodeName): readonly string[] => ADDRESSES[`${node}Overlay`];

export const route = (egress: EgressHost | undefined, owner: NodeName, more: Partial<PodRoute> = {}): PodRoute => ({
  rule: `StaticEgressIP/test/${egress ?? 'none'}/0`,
  destinations: ['0.0.0.0/0', '::/0'],
  except: [],
  egress: egress === undefined ? [] : ADDRESSES[egress].map((address) => ({ address, owner })),
  unavailable: 'drop',
  ...more,
});

export const pods = (host: Host, node: NodeName, routes: readonly PodRoute[]): PodClass => ({
  routes,
  pods: [{ uid: `uid-${host}`, node, addresses: ADDRESSES[host] }],
});

export const planFor = (node: NodeName, more: Partial<EgressPlan> = {}): EgressPlan => ({
  node,
  overlayAddresses: overlayOf(node),
  mtuBytes: tunnelMtuBytes({ overlayAddresses: overlayOf(node) }, OVERLAY_MTU_BYTES),
  podCidrs: node === 'worker' ? ['100.65.30.0/24', 'fd64:65:30::/64'] : ['100.65.20.0/24', 'fd64:65:20::/64'],
  cluster: [
    ...['100.65.0.0/16', '100.66.0.0/16', 'fd64:65::/32', 'fd64:66::/32'],
    ...FAMILIES.flatMap((_, index) => (['worker', 'gateway'] as const).map((host) => ADDRESSES[host][index]!)),
  ],
  overlayDevices: [DEVICES.VXLAN],
  apiServices: [],
  peers: [{ node: PEER[node], overlayAddresses: overlayOf(PEER[node]) }],
  steered: [],
  translated: [],
  addresses: [],
  ...more,
});

export const owns = (...hosts: readonly EgressHost[]): EgressPlan['addresses'] =>
  hosts.flatMap((host) => ADDRESSES[host].map((address) => ({ address, device: 'eth0' })));
