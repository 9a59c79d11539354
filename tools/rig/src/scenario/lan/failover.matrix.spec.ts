import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { layoutOf } from '../../layout/layout.ts';
import { down } from '../../substrate/down.ts';
import { up } from '../../substrate/up.ts';
import { allHealthy, busiestGateway, powerOff, setProbing } from '../outages.ts';
import { startFlow } from '../scenario.ts';
import { onLan, problemsOn } from './place.ts';

/** A gateway fails while pods of two sites talk by the LAN: they lose what pods lose that talk by the overlay. */

const layout = layoutOf({ gateways: 2, workers: 1, lan: true });
const gateways = layout.nodes.filter(({ role, site }) => role === 'gateway' && site === 's1');
/** So long that a flow that waits for the end of it is told from one that was switched. */
const OUTAGE_MS = 6000;
/** What the gateways' tunnels carry on a slow machine without a loss of their own. */
const PER_SECOND = 200;

beforeAll(async () => {
  await down();
  await up(layout);
  await setProbing(layout, 100, 3);
  await allHealthy(layout, 60_000);
}, 300_000);
afterAll(down, 60_000);

test('frames go on by the other gateway, as packets do', { timeout: 600_000 }, async () => {
  const [from, to] = [await onLan(layout, 's1-w1'), await onLan(layout, 's2-w1')];
  let [lanLost, overlayLost] = [0, 0];
  // A flow and its answers choose their gateways each by itself: of several attempts one of each meets the gateway that goes.
  for (let attempt = 0; attempt < 6 && (lanLost === 0 || overlayLost === 0); attempt++) {
    const flows = [
      await startFlow(from.pod, { ip: to.ipv4 }, PER_SECOND),
      await startFlow(from.pod, to.pod, PER_SECOND),
    ];
    const outage = powerOff(layout, await busiestGateway(gateways));
    outage.begin();
    await delay(OUTAGE_MS);
    outage.end();
    const [byLan, byOverlay] = [await flows[0]!.end(), await flows[1]!.end()];
    for (const [way, { lost, sent, losses }] of Object.entries({ LAN: byLan, overlay: byOverlay }))
      console.log(`${way}: ${lost} of ${sent} lost, ${JSON.stringify(losses)}`);
    [lanLost, overlayLost] = [lanLost + byLan.lost, overlayLost + byOverlay.lost];
    for (const { largestGapMillis } of [byLan, byOverlay]) expect(largestGapMillis).toBeLessThan(OUTAGE_MS / 2);
    await allHealthy(layout, 60_000);
  }
  expect(lanLost, 'the flow by the LAN never passed the gateway').toBeGreaterThan(0);
  expect(overlayLost).toBeGreaterThan(0);
  expect(await problemsOn(layout)).toEqual([]);
});
