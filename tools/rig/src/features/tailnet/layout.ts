import { join } from 'node:path';
import { hostOf, PLANS } from '../../layout/addresses.ts';
import type { LabLayout } from '../../layout/layout.ts';
import { tailnetDir } from '../../apps/tailnet-place.ts';

/** Where the control server and the laptop are. */

/** TCP of the control server, which speaks TLS; of its DERP relay; UDP of STUN. */
export const CONTROL_PORTS = { control: 443, derp: 3443, stun: 3478 } as const;
/** Host numbers on the WAN. */
const [CONTROL_HOST, LAPTOP_HOST] = [252, 253];

export const hasTailnet = ({ options }: LabLayout): boolean => options.tailnet;

const ipsOf = ({ underlayFamilies }: LabLayout, host: number): string[] =>
  underlayFamilies.map((family) => PLANS[family].wanHost(host));
export const controlIps = (layout: LabLayout): string[] => ipsOf(layout, CONTROL_HOST);
export const laptopIps = (layout: LabLayout): string[] => ipsOf(layout, LAPTOP_HOST);

export const controlUrl = (layout: LabLayout): string => `https://${hostOf(controlIps(layout)[0]!)}`;

export const laptopFolder = join(tailnetDir, 'laptop');
export const LAPTOP_TUN = 'ts0';
