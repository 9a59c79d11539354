/** Something that a Node states about itself and that is not used. The rest of the Node is. */
export interface NodeProblem {
  readonly reason: NodeProblemReason;
  /** Where on the Node: `metadata.annotations[...]`, `status.addresses`, `spec.podCIDRs`. */
  readonly field: string;
  /** The value (clipped, quoted), what is valid there, and the remedy. */
  readonly message: string;
}

export type NodeProblemReason =
  | 'InvalidWireGuardKey'
  | 'InvalidKeyGeneration'
  | 'InvalidRotationRequest'
  | 'UnknownTunnelProtocol'
  | 'InvalidWireGuardPort'
  | 'InvalidExternalAddress'
  | 'UnusableAddress'
  | 'TooManyAddresses'
  | 'InvalidPodCIDR'
  | 'TooManyPodCIDRs'
  | 'AddressOutsideSite'
  | 'AddressOfPods'
  | 'ExternalAddressInSite'
  | 'PodCIDRsOutsideSite'
  | 'PodCIDRTooWide'
  | 'WireGuardKeyTaken'
  | 'AddressTaken'
  | 'PodCIDRTaken'
  | 'InvalidL2Locator'
  | 'L2LocatorOutsideSite'
  | 'L2LocatorTaken'
  | 'FactsDamped';

const LONGEST_VALUE = 64;

/** A foreign value for a message: quoted, control characters escaped, at most 64 characters of it. */
export const quote = (value: string): string =>
  value.length <= LONGEST_VALUE
    ? JSON.stringify(value)
    : `${JSON.stringify(value.slice(0, LONGEST_VALUE))}... (${value.length} characters)`;
