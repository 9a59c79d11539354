import { hostOf } from '../layout/addresses.ts';
import { type LabLayout, worldIps } from '../layout/layout.ts';

/** Where the relay is. */

/** TCP, on the host of the outside world. */
export const RELAY_PORT = 3478;
/** TCP: metrics, at every address of that host. */
export const RELAY_HEALTH_PORT = 9994;
export const hasRelay = ({ options }: LabLayout): boolean => options.blockUdp !== 'off';
export const relayEndpoint = (layout: LabLayout): string => `${hostOf(worldIps(layout)[0]!)}:${RELAY_PORT}`;
