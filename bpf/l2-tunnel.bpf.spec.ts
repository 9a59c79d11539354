import { macBytes } from '@unbounded/ip';
import { innerMac } from '@unbounded/bpf-maps';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { flowLabelOf, outer, packet, sid } from './l2-frames.ts';
import {
  buildSwitch,
  countsOf,
  DEVICE,
  FAR,
  FAR_LOCATOR,
  type L2Switch,
  LOCATOR,
  NETWORK,
  OWN,
  populate,
  PORT,
  REDIRECT,
  runPort,
} from './l2-switch.ts';

/** Frames for other nodes go straight into the tunnel that the data path has for the node, where it takes Ethernet frames. */

let l2: L2Switch;

beforeAll(() => void (l2 = buildSwitch()));
beforeEach(() => populate(l2));
afterAll(() => l2[Symbol.dispose]());

const BLOCK = 'fd00:cafe::/52';
const OWN_MAC = '02:0a:01:02:03:ff';
const tunnel = { remote: '192.0.2.7', vni: 1, ifindex: PORT, protocol: 'vxlan', setKey: true, healthy: true } as const;
const sent = packet({ from: OWN.mac, to: FAR.mac }, { source: OWN.ipv4, destination: FAR.ipv4 });

/** What leaves, as it is in SRv6 with these MACs. */
const inSrv6 = (data: Uint8Array, to: string, from: string): Uint8Array => {
  const destination = sid(FAR_LOCATOR, 1, NETWORK);
  const whole = outer({ mac: from, source: LOCATOR, destination, flowLabel: flowLabelOf(data) }, sent);
  whole.set(macBytes(to), 0);
  return whole;
};
const forget = (): void => {
  for (const [stat] of [...l2.redirected.entries()]) l2.redirected.setAll(stat, 0n);
  l2.tunnelConfig.set(0, { anySource: false, ownMac: OWN_MAC });
};
beforeEach(forget);

test.each([
  ['VXLAN', 'vxlan', '192.0.2.7'],
  ['GENEVE', 'geneve', '192.0.2.7'],
  ['VXLAN over IPv6', 'vxlan', '2001:db8::7'],
] as const)('by %s with the MACs of its ends', (_, protocol, remote) => {
  l2.endpoints.set(BLOCK, { ...tunnel, protocol, remote });
  const { returnValue, data } = runPort(l2, sent);
  expect(returnValue).toBe(REDIRECT);
  expect(data).toEqual(inSrv6(data, innerMac(remote), OWN_MAC));
  expect(l2.counts()).toEqual({ encapsulated: 1 });
  expect(countsOf(l2.redirected)).toEqual({ [`redirected_${protocol}`]: 1 });
});

test('by the healthy member of a group', () => {
  l2.groups.set(7, [
    { ...tunnel, remote: '192.0.2.8', healthy: false, weight: 1 },
    { ...tunnel, remote: '192.0.2.9', weight: 1 },
  ]);
  l2.endpoints.set(BLOCK, { ...tunnel, group: 7 });
  const { data } = runPort(l2, sent);
  expect(data).toEqual(inSrv6(data, innerMac('192.0.2.9'), OWN_MAC));
});

test.each([
  ['there is no record', undefined, undefined],
  ['the link is WireGuard, which takes no frames', { ...tunnel, protocol: 'wireguard', setKey: false }, undefined],
  ['the link is IPIP, which takes no frames', { ...tunnel, protocol: 'ipip' }, undefined],
  ['no member of the group is healthy', { ...tunnel, group: 7 }, [{ ...tunnel, healthy: false, weight: 1 }]],
  ['there is no such group', { ...tunnel, group: 9 }, undefined],
] as const)('but by the forwarding of the node where %s', (_, endpoint, members) => {
  if (members) l2.groups.set(7, members);
  if (endpoint) l2.endpoints.set(BLOCK, endpoint);
  const { returnValue, data } = runPort(l2, sent);
  expect(returnValue).toBe(REDIRECT);
  expect(data).toEqual(inSrv6(data, DEVICE.mac, DEVICE.mac));
  expect(countsOf(l2.redirected)).toEqual({});
});
