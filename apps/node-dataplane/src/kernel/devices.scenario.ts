/** A device of a node that gets IPv6 blocks later. Runs in a network namespace of its own; prints what was seen as JSON. */
import { createRouteSocket } from '@unbounded/netlink';
import { ensureDevices } from './devices.ts';
import type { DeviceSpec } from './devices.plan.ts';

export interface Report {
  /** Problems of each step. */
  readonly problems: readonly (readonly string[])[];
  readonly addresses: readonly string[];
}

const withAddresses = (addresses: readonly string[]): DeviceSpec => ({
  name: 'vxlan0',
  purpose: 'vxlan',
  mtuBytes: 1442,
  arp: false,
  addresses,
});

const net = createRouteSocket();
const steps = [['100.65.1.1/32'], ['100.65.1.1/32', 'fd64:1::1/128']];
const problems: string[][] = [];
for (const addresses of steps)
  problems.push((await ensureDevices(net, [withAddresses(addresses)])).problems.map(({ message }) => message));
const index = (await net.links.get('vxlan0'))!.index;
const addresses = (await net.addresses.list()).filter(({ link }) => link === index).map(({ address }) => address);
console.log(JSON.stringify({ problems, addresses } satisfies Report));
net.close();
