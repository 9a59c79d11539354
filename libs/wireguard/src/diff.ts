import type { DeviceChange, DeviceSpec, DeviceState } from './device.ts';
import { planDevice } from './device.diff.ts';
import { publicKeyOf } from './key.ts';

/** {@link planDevice} with the public key worked out. @throws WireGuardError `invalid` for a bad private key */
export const diffDevice = (observed: DeviceState, desired: DeviceSpec): DeviceChange | undefined =>
  planDevice(observed, desired, publicKeyOf(desired.privateKey));
