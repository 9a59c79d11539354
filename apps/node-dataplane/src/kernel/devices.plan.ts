import { DEVICES, type NodePlan } from '@unbounded/topology';

/** The devices that a plan needs, as values. */

export type DevicePurpose = 'anchor' | 'bridge' | 'vxlan' | 'geneve' | 'ipip' | 'wireguard';

export interface DeviceSpec {
  readonly name: string;
  readonly purpose: DevicePurpose;
  readonly mtuBytes: number;
  readonly arp: boolean;
  /** Absent: whatever the kernel gave it. */
  readonly mac?: string;
  /** Of a tunnel to one peer; absent: each packet brings its far end along. */
  readonly remoteIp?: string;
  /** With prefix length. */
  readonly addresses: readonly string[];
}

/** MAC of a tunnel device: what senders derive from the address that they send to (design: 02:<IPv4>:ff). */
export const tunnelMac = (underlayIp: string): string | undefined => {
  const octets = underlayIp.split('.');
  if (octets.length !== 4) return undefined; // an IPv6 underlay: the ingress program takes any destination MAC
  return ['02', ...octets.map((octet) => Number(octet).toString(16).padStart(2, '0')), 'ff'].join(':');
};

/** First address of a block with the block's own length, as the bridge has it. */
const bridgeAddresses = (plan: NodePlan): string[] =>
  plan.podCidrs.map((block, index) => `${plan.overlayAddresses[index]!.split('/')[0]}/${block.split('/')[1]}`);

const PURPOSES = { VXLAN: 'vxlan', GENEVE: 'geneve', IPIP: 'ipip' } as const;

export const planDevices = (plan: NodePlan): DeviceSpec[] => {
  const overlay = { arp: false, addresses: plan.overlayAddresses };
  const mac = tunnelMac(plan.underlayIp);
  return [
    ...(plan.manageCni && plan.podCidrs.length > 0
      ? [
          {
            name: DEVICES.bridge,
            purpose: 'bridge' as const,
            mtuBytes: plan.mtuBytes,
            arp: true,
            addresses: bridgeAddresses(plan),
          },
        ]
      : []),
    ...plan.tunnels.map(({ kind, device, mtuBytes, remoteIp }) => ({
      name: device,
      purpose: PURPOSES[kind],
      mtuBytes,
      ...overlay,
      ...(mac && kind !== 'IPIP' ? { mac } : {}),
      ...(remoteIp === undefined ? {} : { remoteIp }),
    })),
    ...plan.wireGuard.map(({ name, mtuBytes }) => ({ name, purpose: 'wireguard' as const, mtuBytes, ...overlay })),
    ...(plan.dataplane === 'ebpf'
      ? [{ name: DEVICES.anchor, purpose: 'anchor' as const, mtuBytes: plan.mtuBytes, ...overlay }]
      : []),
  ];
};
