import type { Place } from '../../bpf/places.ts';
import { DEVICES } from '../devices.ts';

/** Which program stands where. */
export const PLACES: Readonly<Record<string, Place>> = {
  [DEVICES.anchor]: { program: 'unbounded_encap', direction: 'egress' },
  [DEVICES.VXLAN]: { program: 'unbounded_tunnel_ingress', direction: 'ingress' },
  [DEVICES.GENEVE]: { program: 'unbounded_tunnel_ingress', direction: 'ingress' },
  [DEVICES.IPIP]: { program: 'unbounded_tunnel_ingress_l3', direction: 'ingress' },
};
