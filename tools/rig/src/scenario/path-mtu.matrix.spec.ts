import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { down } from '../substrate/down.ts';
import { layoutOf } from '../layout/layout.ts';
import { allHealthy, blackHole, setProbing } from './outages.ts';
import { podOn, probeFrom, timeUntil, tryInPod } from './scenario.ts';
import { up } from '../substrate/up.ts';

/** A WAN that drops large packets and says nothing: four links between gateways, of which flows take any. */

const layout = layoutOf({ gateways: 2, workers: 2 });
const LARGEST_BYTES = 1300;
const SIZES = [64, 1000, 1250, 1280, 1300, 1350, 1392] as const;
/** Enough that every link has some, in either direction. */
const STREAMS = 6;
/** The first time paths are found narrow; later they have been taken to be wide again only for some seconds. */
const ROUNDS = 3;
const WIDE_AGAIN_MS = 30_000;

beforeAll(async () => {
  await down();
  await up(layout);
  await setProbing(layout, 100, 3);
}, 300_000);
afterAll(down, 60_000);

test(
  'a WAN that loses large packets without a word is found, and all sizes pass within ten seconds, TCP by every link too',
  { timeout: 400_000 },
  async () => {
    const [from, to] = [await podOn(layout, 's1-w1'), await podOn(layout, 's2-w1')];
    const isThrough = (size: number): boolean =>
      tryInPod(from, 'ping', '-c1', '-W1', '-s', String(size - 28), to.ip) !== undefined;
    for (let round = 0; round < ROUNDS; round++) {
      await allHealthy(layout, 60_000);
      const outage = blackHole(layout, 's2', LARGEST_BYTES);
      outage.begin();
      try {
        expect(isThrough(SIZES.at(-1)!)).toBe(false); // else nothing is lost
        const took = await timeUntil('all sizes pass', () => SIZES.every(isThrough), 30_000);
        console.log(`all sizes passed after ${took} ms`);
        expect(took).toBeLessThan(10_000);
        const streams = [[from, to] as const, [to, from] as const].flatMap(([one, other]) =>
          Array.from({ length: STREAMS }, () => probeFrom(one, ['stream', `${other.ip}:9001`, '4'])),
        );
        await Promise.all(streams);
      } finally {
        outage.end();
      }
      await delay(WIDE_AGAIN_MS);
    }
  },
);
