import { L2_REASONS, type L2Reason } from '@unbounded/bpf-maps/l2';
import { createMetrics, type Metrics } from '@unbounded/telemetry';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createFrameMetrics, type FrameMetrics } from '../apps/node-dataplane/src/l2/frame-metrics.ts';
import { advertisement, arp, BROADCAST, ethernet, icmpv6, macOption, type Outer, packet, TYPE } from './l2-frames.ts';
import {
  around,
  buildSwitch,
  FAR,
  type L2Switch,
  LOCATOR,
  MTU,
  NEAR,
  NETWORK,
  OWN,
  populate,
  PORT,
  runPort,
  runReceive,
  SEGMENT,
  segmented,
} from './l2-switch.ts';

/** A frame for each reason for which the programs of stretched L2 drop one, and what the agent's metrics say afterwards. */

const STRANGER = '02:00:00:00:00:99';
const near = { from: OWN.mac, to: NEAR.mac };
const everybody = { from: OWN.mac, to: BROADCAST };
const flow4 = { source: OWN.ipv4, destination: NEAR.ipv4 };
const flow6 = { source: OWN.ipv6, destination: NEAR.ipv6 };
const filler = (bytes: number): Uint8Array => new Uint8Array(bytes);
const nd = (message: readonly number[], more: object = {}): Uint8Array => icmpv6(near, { ...flow6, message, ...more });
const own = advertisement(OWN.ipv6, 0x60, macOption(2, OWN.mac));
const asked = { operation: 1, senderMac: OWN.mac, sender: OWN.ipv4, target: OWN.ipv4 };
/** Version 5. */
const ofNoVersion = Uint8Array.from(packet(near, flow4), (byte, at) => (at === 14 ? 0x55 : byte));

type Provoke = (l2: L2Switch) => unknown;
const sends =
  (frame: Uint8Array, context?: Uint8Array): Provoke =>
  (l2) =>
    runPort(l2, frame, context);

/** Of frames that a pod sends. */
const AT_PORT: Partial<Record<L2Reason, Provoke>> = {
  drop_malformed: sends(ofNoVersion),
  drop_forged_mac: sends(packet({ ...near, from: STRANGER }, flow4)),
  drop_forged_arp: sends(arp(near, { ...asked, operation: 2, senderMac: STRANGER })),
  drop_forged_nd: sends(nd(advertisement(NEAR.ipv6, 0x60, macOption(2, OWN.mac)))),
  drop_forged_address: sends(packet(near, { ...flow4, source: NEAR.ipv4 })),
  drop_tagged: sends(ethernet(near, TYPE.vlan, filler(50))),
  drop_bridge_protocol: sends(ethernet({ ...near, to: '01:80:c2:00:00:0e' }, 0x88cc, filler(46))),
  drop_llc: sends(ethernet(near, 46, filler(46))),
  drop_dhcp_reply: sends(packet(near, { ...flow4, ports: [67, 68] })),
  drop_router: sends(nd([134, 0, 0, 0, ...filler(36)])),
  drop_nd_extensions: sends(nd(own, { extensions: { first: 60, bytes: [58, 0, 0, 0, 0, 0, 0, 0] } })),
  drop_superpacket: sends(packet(near, flow4), segmented('segs', 2)),
  drop_too_big: sends(ethernet(near, 0x88b5, filler(1400))),
  drop_own_probe: sends(arp(everybody, { ...asked, sender: '0.0.0.0' })),
  drop_same_port: sends(packet({ from: OWN.mac, to: OWN.mac }, flow4)),
  drop_segment(l2) {
    l2.fdb.set({ network: NETWORK, mac: NEAR.mac }, { ifindex: NEAR.ifindex, segment: SEGMENT + 1, sequence: 0n });
    return runPort(l2, packet(near, flow4));
  },
  drop_unknown: sends(packet({ ...near, to: STRANGER }, flow4)),
  drop_broadcast: sends(packet(everybody, { ...flow4, destination: '10.9.0.255' })),
  drop_multicast: sends(packet({ ...near, to: '01:00:5e:00:00:09' }, { ...flow4, destination: '224.0.0.9' })),
  drop_rate(l2) {
    l2.networks.set(NETWORK, { mtu: MTU, broadcast: true });
    l2.buckets.delete(PORT);
    return runPort(l2, packet(everybody, { ...flow4, destination: '10.9.0.255' }));
  },
};

const fromFar = (more: Partial<Outer>): Uint8Array =>
  around(packet({ from: FAR.mac, to: NEAR.mac }, { source: FAR.ipv4, destination: NEAR.ipv4 }), more);
const comes =
  (frame: Uint8Array): Provoke =>
  (l2) =>
    runReceive(l2, frame);

/** Of frames that other nodes send, and of a port whose record is missing. */
const ON_NODE: Partial<Record<L2Reason, Provoke>> = {
  drop_no_port(l2) {
    l2.ports.delete(PORT);
    return runPort(l2, packet(near, flow4));
  },
  drop_no_network(l2) {
    l2.unconfigure();
    return runReceive(l2, fromFar({}));
  },
  drop_not_sid: comes(fromFar({ destination: LOCATOR })),
  drop_unknown_source: comes(around(packet({ from: STRANGER, to: NEAR.mac }, flow4))),
  drop_forged_node: comes(fromFar({ source: 'fd00:cafe:0:3::' })),
  drop_not_local: comes(around(packet({ from: FAR.mac, to: STRANGER }, { ...flow4, source: FAR.ipv4 }))),
};

/** The kernel never refuses the room that a test's frame needs. */
const UNPROVOKED: readonly L2Reason[] = ['drop_encap'];

let l2: L2Switch;
let metrics: Metrics;
let frames: FrameMetrics;

const owners = new Map([[PORT, { network: 'lan', endpoint: 'default/pod' }]]);
const valueOf = async (series: string): Promise<number> => {
  frames.observe(l2, owners);
  const line = (await metrics.render()).split('\n').find((text) => text.startsWith(`${series} `));
  return Number(line?.slice(series.length) ?? 0);
};

beforeAll(() => void (l2 = buildSwitch()));
beforeEach(() => {
  populate(l2);
  metrics = createMetrics();
  frames = createFrameMetrics(metrics);
});
afterAll(() => l2[Symbol.dispose]());

test('there is a frame for each reason', () => {
  const provoked = [...Object.keys(AT_PORT), ...Object.keys(ON_NODE), ...UNPROVOKED];
  expect(provoked.sort()).toEqual(L2_REASONS.filter((reason) => reason.startsWith('drop_')).sort());
});

describe.each(Object.entries(AT_PORT))('a frame that a pod sends and that is dropped as %s', (reason, provoke) => {
  test('raises the metric of its port by one', async () => {
    l2.counters.setAll({ ifindex: PORT, reason: reason as L2Reason }, 0n);
    const series = `unbounded_l2_port_frames_total{network="lan",endpoint="default/pod",result="${reason}"}`;
    const before = await valueOf(series);
    provoke(l2);
    expect((await valueOf(series)) - before).toBe(1);
  });
});

describe.each(Object.entries(ON_NODE))('a frame that no port has, and that is dropped as %s', (reason, provoke) => {
  test('raises the metric of the node by one', async () => {
    const series = `unbounded_l2_received_frames_dropped_total{reason="${reason.slice('drop_'.length)}"}`;
    const before = await valueOf(series);
    provoke(l2);
    expect((await valueOf(series)) - before).toBe(1);
  });
});
