import { readFileSync } from 'node:fs';
import { MAPS } from '@unbounded/bpf-maps';
import { L2_MAPS, L2_REASONS } from '@unbounded/bpf-maps/l2';
import { readObject } from '@unbounded/libbpf-ts';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { BROADCAST, ethernet, flowLabelOf, outer, packet, sid } from './l2-frames.ts';
import {
  DEVICE,
  FAR,
  FAR_LOCATOR,
  L2_OBJECT,
  type L2Switch,
  buildSwitch,
  LOCATOR,
  NEAR,
  NETWORK,
  OWN,
  populate,
  PORT,
  REDIRECT,
  runPort,
  SEGMENT,
  SHOT,
} from './l2-switch.ts';
import type { Flow } from './packets.ts';

/** To where frames of a port go. */

let l2: L2Switch;

beforeAll(() => void (l2 = buildSwitch()));
beforeEach(() => populate(l2));
afterAll(() => l2[Symbol.dispose]());

const flows = (to: { readonly ipv4: string; readonly ipv6: string }): readonly Flow[] => [
  { source: OWN.ipv4, destination: to.ipv4 },
  { source: OWN.ipv6, destination: to.ipv6 },
];
const unknownUnicast = packet({ from: OWN.mac, to: '02:00:00:00:00:99' }, flows(NEAR)[0]!);

describe('layouts', () => {
  test('the object’s maps are those that user space writes', () => {
    const declared = Object.fromEntries(
      readObject(readFileSync(L2_OBJECT)).maps.map(({ name, keySize, valueSize, maxEntries }) => [
        name,
        { keyBytes: keySize, valueBytes: valueSize, maxEntries },
      ]),
    );
    expect(declared).toEqual({ ...L2_MAPS, ...MAPS });
  });

  test('reasons have the same names in the same order', () => {
    const header = readFileSync(new URL('include/l2_reasons.h', import.meta.url), 'utf8');
    const names = [...header.matchAll(/^\tL2_(\w+),/gm)].map(([, name = '']) => name.toLowerCase());
    expect(names.filter((name) => name !== 'reason_count')).toEqual([...L2_REASONS]);
  });

  test('the verifier walks few enough instructions for kernels that give up sooner', () => {
    for (const name of ['unbounded_l2_port', 'unbounded_l2_receive'])
      expect(l2.object.program(name).info.verifiedInstructions, name).toBeLessThan(200_000);
  });
});

describe('unicast', () => {
  test('for a port of this node goes there as it is', () => {
    for (const flow of flows(NEAR)) {
      const sent = packet({ from: OWN.mac, to: NEAR.mac }, flow);
      const result = runPort(l2, sent);
      expect(result.returnValue).toBe(REDIRECT);
      expect(result.data).toEqual(sent);
    }
    expect(l2.counts()).toEqual({ forwarded: 2 });
  });

  test('for another node goes there in SRv6, by the SID of the network', () => {
    for (const flow of flows(FAR)) {
      const sent = packet({ from: OWN.mac, to: FAR.mac }, flow);
      const { returnValue, data } = runPort(l2, sent);
      expect(returnValue).toBe(REDIRECT);
      const destination = sid(FAR_LOCATOR, 1, NETWORK);
      expect(destination).toBe('fd00:cafe:0:2:1:102:304:0');
      expect(data).toEqual(
        outer({ mac: DEVICE.mac, source: LOCATOR, destination, flowLabel: flowLabelOf(data) }, sent),
      );
    }
    expect(l2.counts()).toEqual({ encapsulated: 2 });
  });

  test('that is no IP goes there too', () => {
    const sent = ethernet({ from: OWN.mac, to: FAR.mac }, 0x88b5, new Uint8Array(46));
    const { data } = runPort(l2, sent);
    const destination = sid(FAR_LOCATOR, 1, NETWORK);
    expect(data).toEqual(outer({ mac: DEVICE.mac, source: LOCATOR, destination, flowLabel: flowLabelOf(data) }, sent));
  });

  test('has the flow label of its flow', () => {
    const label = (port: number): number =>
      flowLabelOf(runPort(l2, packet({ from: OWN.mac, to: FAR.mac }, { ...flows(FAR)[0]!, ports: [port, 80] })).data);
    expect(label(1000)).toBe(label(1000));
    expect(new Set([1000, 1001, 1002, 1003].map(label)).size).toBe(4);
  });

  test('has no label whose bits stand where IPv4 has ECN, which VXLAN and GENEVE would copy', () => {
    const second = (port: number, flow: Flow): number =>
      runPort(l2, packet({ from: OWN.mac, to: FAR.mac }, { ...flow, ports: [port, 80] })).data[15]!;
    const bytes = flows(FAR).flatMap((flow) => Array.from({ length: 64 }, (_, at) => second(1000 + at, flow)));
    expect(new Set(bytes.map((byte) => byte & 0b11))).toEqual(new Set([0]));
    expect(new Set(bytes).size).toBeGreaterThan(1);
  });

  test('to the port that it came from is dropped', () => {
    expect(runPort(l2, packet({ from: OWN.mac, to: OWN.mac }, flows(NEAR)[0]!)).returnValue).toBe(SHOT);
    expect(l2.counts()).toEqual({ drop_same_port: 1 });
  });

  test('of another network does not know the MACs of this one', () => {
    l2.networks.set(9, { mtu: 1366 });
    l2.ports.set(PORT, { network: 9, segment: SEGMENT, rate: 0, burst: 0, mac: OWN.mac });
    expect(runPort(l2, packet({ from: OWN.mac, to: NEAR.mac }, flows(NEAR)[0]!)).returnValue).toBe(SHOT);
    expect(l2.counts()).toEqual({ drop_unknown: 1 });
  });
});

describe('segments', () => {
  test.each([
    ['here', NEAR, { ifindex: NEAR.ifindex }],
    ['at another node', FAR, { locator: FAR_LOCATOR }],
  ] as const)('another one %s is reached when the pair is allowed, in that direction', (_, to, place) => {
    l2.fdb.set({ network: NETWORK, mac: to.mac }, { ...place, segment: 8, sequence: 0n });
    const sent = packet({ from: OWN.mac, to: to.mac }, flows(to)[0]!);
    expect(runPort(l2, sent).returnValue).toBe(SHOT);
    l2.segments.set({ network: NETWORK, from: 8, to: SEGMENT }, true);
    expect(runPort(l2, sent).returnValue).toBe(SHOT);
    expect(l2.counts()).toEqual({ drop_segment: 2 });
    l2.segments.set({ network: NETWORK, from: SEGMENT, to: 8 }, true);
    expect(runPort(l2, sent).returnValue).toBe(REDIRECT);
  });
});

describe('records that are missing', () => {
  test.each<[string, () => unknown, string]>([
    ['of the port', () => l2.ports.delete(PORT), 'drop_no_port'],
    ['of the network', () => l2.networks.delete(NETWORK), 'drop_no_network'],
    ['of the node', () => l2.unconfigure(), 'drop_no_network'],
  ])('%s: nothing is carried', (_, remove, reason) => {
    remove();
    expect(runPort(l2, packet({ from: OWN.mac, to: FAR.mac }, flows(FAR)[0]!)).returnValue).toBe(SHOT);
    expect(l2.counts()).toEqual({ [reason]: 1 });
  });
});

describe('counters', () => {
  test('are the device’s own where it has an entry', () => {
    const key = { ifindex: PORT, reason: 'drop_unknown' } as const;
    l2.counters.setAll(key, 0n);
    runPort(l2, unknownUnicast);
    expect(l2.counters.get(key)!.reduce((sum, value) => sum + value, 0n)).toBe(1n);
    expect(l2.counts()).toEqual({});
    runPort(l2, packet({ from: OWN.mac, to: BROADCAST }, { source: OWN.ipv4, destination: '255.255.255.255' }));
    expect(l2.counts()).toEqual({ drop_broadcast: 1 });
  });
});
