import { innerMac } from '@unbounded/bpf-maps';
import { firstAddress, formatAddress, parsePrefix } from '@unbounded/ip';
import { DEVICES } from '../../data-path/devices.ts';
import type { KernelPlan } from '../../data-path/kernel-plan.ts';
import { sourceTowards } from './own-addresses.ts';

/** The devices that a plan needs, as values. */

type DevicePurpose = 'anchor' | 'bridge' | 'echo' | 'vxlan' | 'geneve' | 'ipip' | 'wireguard';

/** Takes packets from peers: it comes up only once those are checked. */
export const isTunnel = ({ purpose }: DeviceSpec): boolean =>
  purpose !== 'anchor' && purpose !== 'bridge' && purpose !== 'echo';

export interface DeviceSpec {
  readonly name: string;
  readonly purpose: DevicePurpose;
  readonly mtuBytes: number;
  readonly arp: boolean;
  /** Absent: whatever the kernel gave it. */
  readonly mac?: string;
  /** Of a tunnel to one peer; absent: each packet brings its far end along. */
  readonly remoteIp?: string;
  /** From which a tunnel to one peer sends, of the kinds that can be told; absent: the kernel chooses. */
  readonly localIp?: string;
  /** It carries IPv6 though it has no address of it: locators in a cluster whose pods have IPv4 alone. */
  readonly ipv6?: true;
  /** With prefix length. */
  readonly addresses: readonly string[];
}

/** First address of a block with the block's own length, as the bridge has it. */
const bridgeAddresses = (plan: KernelPlan): string[] =>
  plan.podCidrs.map((text) => {
    const block = parsePrefix(text);
    return `${formatAddress(firstAddress(block))}/${block.length}`;
  });

/**
 * Without one of its own a bridge has the lowest MAC of its ports: when that pod goes, the others would send to nobody
 * until they ask for their gateway anew, ten seconds later.
 */
const bridgeMac = (plan: KernelPlan): string => innerMac(plan.overlayAddresses[0]!.split('/')[0]!);

/** Of IPIP only: GENEVE's devices take none, and VXLAN's serves all peers. */
const localIpOf = (plan: KernelPlan, { kind, remoteIp }: KernelPlan['tunnels'][number]): string | undefined =>
  kind === 'IPIP' && remoteIp !== undefined ? sourceTowards(plan, remoteIp) : undefined;

const PURPOSES = { VXLAN: 'vxlan', GENEVE: 'geneve', IPIP: 'ipip' } as const;

export const planDevices = (plan: KernelPlan): DeviceSpec[] => {
  const onlyLocators = plan.locators?.own !== undefined && !plan.overlayAddresses.some((text) => text.includes(':'));
  const overlay = { arp: false, addresses: plan.overlayAddresses, ...(onlyLocators ? { ipv6: true as const } : {}) };
  const mac = plan.underlayIp === '' ? undefined : innerMac(plan.underlayIp); // what senders derive from that address
  return [
    ...(plan.manageCni && plan.podCidrs.length > 0
      ? [
          {
            name: DEVICES.bridge,
            purpose: 'bridge' as const,
            mtuBytes: plan.mtuBytes,
            arp: true,
            mac: bridgeMac(plan),
            addresses: bridgeAddresses(plan),
          },
        ]
      : []),
    ...plan.tunnels.map((tunnel) => {
      const { kind, device, mtuBytes, remoteIp } = tunnel;
      const localIp = localIpOf(plan, tunnel);
      return {
        name: device,
        purpose: PURPOSES[kind],
        mtuBytes,
        ...overlay,
        ...(mac && kind !== 'IPIP' ? { mac } : {}),
        ...(remoteIp === undefined ? {} : { remoteIp }),
        ...(localIp === undefined ? {} : { localIp }),
      };
    }),
    ...plan.wireGuard.map(({ name, mtuBytes }) => ({ name, purpose: 'wireguard' as const, mtuBytes, ...overlay })),
    ...(plan.dataplane === 'ebpf'
      ? [{ name: DEVICES.anchor, purpose: 'anchor' as const, mtuBytes: plan.mtuBytes, ...overlay }]
      : []),
    ...(plan.echoes === undefined
      ? []
      : [{ name: DEVICES.echo, purpose: 'echo' as const, mtuBytes: plan.mtuBytes, arp: false, addresses: [] }]),
  ];
};
