import type { Direction } from '@unbounded/libbpf-ts';
import { DEVICES } from '../devices.ts';

/** Which program stands where. */
export const PLACES: Readonly<Record<string, { readonly program: string; readonly direction: Direction }>> = {
  [DEVICES.anchor]: { program: 'unbounded_encap', direction: 'egress' },
  [DEVICES.VXLAN]: { program: 'unbounded_tunnel_ingress', direction: 'ingress' },
  [DEVICES.GENEVE]: { program: 'unbounded_tunnel_ingress', direction: 'ingress' },
  [DEVICES.IPIP]: { program: 'unbounded_tunnel_ingress_l3', direction: 'ingress' },
};

/** A device that is there. */
export interface Device {
  readonly name: string;
  readonly index: number;
}
