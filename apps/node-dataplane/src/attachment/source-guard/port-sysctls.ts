import { writeSetting } from '../../kernel/proc-sys.ts';

/**
 * A port hands nothing to the node's own IP stack: pods reach it by the bridge, past the guard. Frames come to the stack by the port itself
 * while it is in no bridge, and those that bridges keep to themselves. Strict reverse-path filtering ends IPv4 there, since
 * no route leads to a port. The settings live and die with the device.
 */
const SETTINGS = { 'ipv4/conf/%/rp_filter': '1', 'ipv6/conf/%/disable_ipv6': '1' } as const;

export const closePort = (device: string): void => {
  for (const [name, value] of Object.entries(SETTINGS)) writeSetting(`net/${name.replace('%', device)}`, value);
};
