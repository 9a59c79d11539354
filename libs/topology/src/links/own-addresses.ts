import type { Member } from '../world/world.ts';
import { familyOf } from './underlay.ts';

/** From which address the packets of unencrypted tunnels are to come, since receivers know their senders by it: one a family. */
export const ownAddresses = ({ internalIps }: Member): string[] =>
  ([4, 6] as const).flatMap((family) => internalIps.find((ip) => familyOf(ip) === family) ?? []);
