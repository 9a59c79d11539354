import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { kubectl } from './control-plane.ts';
import { down } from './down.ts';
import { layoutOf, namespaceOf, routerName } from './layout.ts';
import { allHealthy } from './outages.ts';
import { isWireGuard, parsePcap } from './pcap.ts';
import { flowDuring, podOn, startCapture } from './scenario.ts';
import { up } from './up.ts';

/** A site says WireGuard; whatever else is changed meanwhile, none of its packets is seen in the clear. */

const layout = layoutOf({ protocol: 'WireGuard' });
const work = mkdtempSync(join(tmpdir(), 'unbounded-lab-'));
const CHANGES = 20;

beforeAll(async () => {
  await down();
  await up(layout);
  await allHealthy(layout, 60_000);
}, 300_000);
afterAll(async () => {
  await down();
  rmSync(work, { recursive: true, force: true });
}, 60_000);

/** Changes that may be asked for while Site s1 says WireGuard. */
const changes: readonly (readonly [kind: string, name: string, spec: object])[] = [
  ...['VXLAN', 'None', 'Auto', 'WireGuard'].map((tunnelProtocol) => ['site', 's2', { tunnelProtocol }] as const),
  ...['VXLAN', 'None', 'Auto'].map((tunnelProtocol) => ['gatewaypool', 's1-gateways', { tunnelProtocol }] as const),
  ...['VXLAN', 'None', 'Auto'].map(
    (tunnelProtocol) => ['sitegatewaypoolassignment', 's1', { tunnelProtocol }] as const,
  ),
  ...['VXLAN', 'None', 'Auto'].map((tunnelProtocol) => ['gatewaypoolpeering', 'all', { tunnelProtocol }] as const),
  ...[true, false].map((enabled) => ['gatewaypoolpeering', 'all', { enabled }] as const),
  ...[1300, 1400].map((tunnelMTU) => ['site', 's1', { tunnelMTU }] as const),
  ...[100, 1000].map((interval) => ['site', 's1', { healthCheckSettings: { transmitInterval: interval } }] as const),
];

test(`no cleartext during ${CHANGES} random changes under traffic`, { timeout: 300_000 }, async () => {
  const file = join(work, 'lan.pcap');
  const [from, to] = [await podOn(layout, 's1-w1'), await podOn(layout, 's1-w2')];
  const stop = await startCapture(namespaceOf(routerName('s1')), 'lan0', file);
  const made: string[] = [];
  await flowDuring({ from, to, seconds: 2 * CHANGES + 5 }, async () => {
    for (let count = 0; count < CHANGES; count++) {
      const [kind, name, spec] = changes[Math.floor(Math.random() * changes.length)]!;
      made.push(`${kind}/${name} ${JSON.stringify(spec)}`);
      await kubectl(layout, ['patch', kind, name, '--type=merge', '-p', JSON.stringify({ spec })]);
      await delay(1500);
    }
  });
  await stop();
  const packets = parsePcap(readFileSync(file));
  expect(packets.filter(isWireGuard).length).toBeGreaterThan(1000);
  const isPods = (address: string | undefined): boolean => address?.startsWith('100.65.') ?? false;
  const inClear = packets.filter(
    ({ source, destination, destinationPort }) => isPods(source) || isPods(destination) || destinationPort === 4789,
  );
  expect(
    inClear.map(({ source, destination }) => `${source} > ${destination}`),
    made.join('\n'),
  ).toEqual([]);
});
