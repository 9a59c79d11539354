import type { Family } from '@unbounded/ip';
import type { Member } from '../world/world.ts';

/** An address that the node must reach without the overlay. */
export interface ProtectedAddress {
  readonly address: string;
  /** What is there, to follow "holds 192.0.2.1,": `an address of the API server`. */
  readonly role: string;
}

/** The node for which a plan is made: what it knows of itself, besides what the objects say. */
export interface LocalNode {
  readonly member: Member;
  /** MTU of the device that leads to the underlay, bytes. */
  readonly underlayMtuBytes: number;
  /** Largest packet inside the tunnel that a path carries, bytes, by the peer's name, where it was measured. */
  readonly pathMtuBytes?: ReadonlyMap<string, number>;
  /** Addresses that are never routed into the overlay, besides those that the objects show. */
  readonly protectedAddresses?: readonly ProtectedAddress[];
  /** Lanes on which there was a handshake ({@link laneId}); of links with one lane it says nothing. */
  readonly established?: ReadonlySet<string>;
  /** Families whose packets to an echo address the kernel forwards. Absent: both. */
  readonly echoFamilies?: readonly Family[];
}
