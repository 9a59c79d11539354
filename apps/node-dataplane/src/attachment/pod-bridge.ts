import { DEVICES } from '@unbounded/config/ownership';

/** The device whose ports are the pods: the CNI list names it, and connectivity makes it. */
export const POD_BRIDGE = DEVICES.bridge;
