/** A device of a node that gets IPv6 blocks later, one of WireGuard, and the bridge of pods. Runs in a network namespace of its own; prints what was seen as JSON. */
import { createRouteSocket } from '@unbounded/netlink';
import { ensureDevices } from './devices.ts';
import type { DeviceSpec } from './devices.plan.ts';

export interface Report {
  /** Problems of each step. */
  readonly problems: readonly (readonly string[])[];
  readonly addresses: readonly string[];
  /** Of the WireGuard device: its kind, and its queue as it was made, and when the next pass found it with TUN's own. */
  /** Settings of the bridge: as it was made, as somebody changed it, and as the next pass left it. */
  readonly bridge: readonly unknown[];
  readonly wireGuard: { readonly kind: string; readonly queuePackets: readonly number[] };
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
const wireGuardSpec: DeviceSpec = { name: 'wg51820', purpose: 'wireguard', mtuBytes: 1420, arp: true, addresses: [] };
const ensureWireGuard = async () => (await ensureDevices(net, [wireGuardSpec])).problems;
const find = async () => (await net.links.get(wireGuardSpec.name))!;
await ensureWireGuard();
const made = await find();
await net.links.modify(made.index, { txQueuePackets: 500 });
await ensureWireGuard();
const queuePackets = [made.txQueuePackets, (await find()).txQueuePackets];
const wireGuard = { kind: made.kind?.kind ?? 'none', queuePackets };
const bridgeSpec: DeviceSpec = { name: 'cbr0', purpose: 'bridge', mtuBytes: 1400, arp: true, addresses: [] };
const bridge: unknown[] = [];
const seeBridge = async (): Promise<unknown> => bridge.push((await net.links.get('cbr0'))?.kind);
problems.push((await ensureDevices(net, [bridgeSpec])).problems.map(({ message }) => message));
await seeBridge();
const settings = { stp: true, multicastSnooping: true, linkLocalLearning: true, groupForwardMask: 0 };
await net.links.modify('cbr0', { kind: { kind: 'bridge', ...settings } });
await seeBridge();
await ensureDevices(net, [bridgeSpec]);
await seeBridge();
console.log(JSON.stringify({ problems, addresses, bridge, wireGuard } satisfies Report));
net.close();
