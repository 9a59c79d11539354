import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { PIN_FOLDER } from '@unbounded/config/ownership';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { down } from '../substrate/down.ts';
import { type LabNode, layoutOf } from '../layout/layout.ts';
import { allHealthy, powerOff, setProbing } from './outages.ts';
import { parsePcap } from './pcap.ts';
import { flowDuring, namespaceOf, podOn, startCapture, timeUntil } from './scenario.ts';
import { up } from '../substrate/up.ts';
import { onNode } from '../node/node.ts';

/** Which flows a gateway carries while another one fails and returns. */

const layout = layoutOf({ gateways: 2, workers: 2 });
const gateways = layout.nodes.filter(({ role, site }) => role === 'gateway' && site === 's1');
const work = mkdtempSync(join(tmpdir(), 'flows-'));
const FLOWS = 16;
const CAPTURE_MS = 1500;
const PER_SECOND = 100;
const groupMapPin = `${PIN_FOLDER}/maps/unbounded_nexthop_groups`;

beforeAll(async () => {
  await down();
  await up(layout);
  await setProbing(layout, 100, 3);
}, 300_000);
afterAll(async () => {
  rmSync(work, { recursive: true });
  await down();
}, 60_000);

/** The next-hop groups of every node as its kernel holds them: members, and the share that each carries. */
const groups = (): Record<string, string[]> =>
  Object.fromEntries(
    layout.nodes.map(({ name }) => {
      const dump = onNode(name, 'bpftool', '-j', 'map', 'dump', 'pinned', groupMapPin);
      const entries = JSON.parse(dump) as { key: string[]; value: string[] }[];
      return [name, entries.map(({ key, value }) => `${key.join('')}: ${value.join('')}`).sort()];
    }),
  );

/** Waits until all nodes spread their flows as they do at rest: that peers are healthy is known a moment before. */
const spreadAs = (atRest: ReturnType<typeof groups>): Promise<number> =>
  timeUntil('flows are spread as at rest', () => isDeepStrictEqual(groups(), atRest), 30_000);

/**
 * Source ports of the flows that pass a gateway, there and back: by most of their packets, since on a machine that is short
 * of time a link may be out for a moment, and its flows elsewhere.
 */
const portsThrough = async (
  gateway: LabNode,
  destination: string,
): Promise<{ there: Set<number>; back: Set<number> }> => {
  const file = join(work, 'ports.pcap');
  const stop = await startCapture(namespaceOf(gateway.name), 'vxlan0', file);
  await delay(CAPTURE_MS);
  await stop();
  const packets = parsePcap(readFileSync(file));
  const passing = (ports: readonly number[]): Set<number> =>
    new Set(
      ports.filter((port) => 2 * ports.filter((other) => other === port).length > (PER_SECOND * CAPTURE_MS) / 1000),
    );
  return {
    there: passing(
      packets.flatMap(({ destination: to, sourcePort, destinationPort }) =>
        to === destination && destinationPort === 9000 ? [sourcePort!] : [],
      ),
    ),
    back: passing(
      packets.flatMap(({ source, sourcePort, destinationPort }) =>
        source === destination && sourcePort === 9000 ? [destinationPort!] : [],
      ),
    ),
  };
};

test(
  `of ${FLOWS} flows none that passes the healthy gateway is lost or moved, neither as the other fails nor as it returns`,
  { timeout: 240_000 },
  async () => {
    await allHealthy(layout, 60_000);
    await delay(3000);
    const atRest = groups();
    const ends = {
      from: await podOn(layout, 's1-w1'),
      to: await podOn(layout, 's2-w1'),
      seconds: 90,
      perSecond: PER_SECOND,
    };
    const [failing, healthy] = gateways as [LabNode, LabNode];
    const seen: { there: Set<number>; back: Set<number> }[] = [];
    const look = async (): Promise<void> => void seen.push(await portsThrough(healthy, ends.to.ip));
    const disturb = async (): Promise<void> => {
      const outage = powerOff(layout, failing);
      // Sixteen senders that start at once may hold up probes: a link that is out for a moment leads its flows elsewhere.
      await spreadAs(atRest);
      await look();
      outage.begin();
      await delay(3000);
      await look();
      outage.end();
      await spreadAs(atRest);
      await look();
      expect(groups()).toEqual(atRest);
    };
    const reports = await Promise.all(
      Array.from({ length: FLOWS }, (_, index) => flowDuring(ends, index === 0 ? disturb : async () => undefined)),
    );
    const [before, meanwhile, after] = seen;
    expect(meanwhile!.there.size).toBe(FLOWS); // it carries all
    expect(before!.there.size).toBeLessThan(FLOWS); // the other carried some
    for (const way of ['there', 'back'] as const) {
      expect(before![way].isSubsetOf(meanwhile![way])).toBe(true);
      expect(after![way]).toEqual(before![way]);
    }
    const untouched = before!.there.intersection(before!.back).size;
    expect(reports.filter(({ lost }) => lost === 0).length).toBeGreaterThanOrEqual(untouched);
  },
);
