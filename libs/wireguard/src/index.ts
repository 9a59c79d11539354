export {
  type DeviceSpec,
  type DeviceState,
  type PeerSpec,
  type PeerState,
  type WireGuardDevice,
  WireGuardError,
} from './device.ts';
export { afterChange, planDevice } from './device.diff.ts';
export { diffDevice } from './diff.ts';
export { formatEndpoint, parseEndpoint } from './endpoint.codec.ts';
export { generatePrivateKey, publicKeyOf } from './key.ts';
export { encodeChange } from './generic.codec.ts';
export { isKey } from './key.codec.ts';
export { peerFault } from './peer-fault.ts';
export { openKernelDevice } from './kernel-device.ts';
export { openUserspaceDevice } from './userspace-device.ts';
