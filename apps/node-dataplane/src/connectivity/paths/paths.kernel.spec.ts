import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { FlowCount } from '../keys/flow.scenario.ts';
import { until } from '../keys/rotation.scenario.ts';
import { type Gateway, makeWorld, type PathWorld } from './paths.scenario.ts';

/** Two sites behind routers with the real parts: agents, keepers, wireguard-go, the relay. Packets go at 1,000 a second. */

/** Of each direction the longest time without traffic; 0 only when nothing at all was lost. */
const outageMs = (counts: readonly FlowCount[]): number[] => counts.map(({ longestGapMs }) => longestGapMs);
const LONGEST_MS = 3000;
/** To see that nothing else is lost after a move. */
const AFTERWARDS_MS = 1500;

const during = async (world: PathWorld, act: () => Promise<unknown>): Promise<number[]> => {
  const end = world.startFlow();
  await delay(500);
  await act();
  await delay(AFTERWARDS_MS);
  const counts = await end();
  for (const { from, lostCount, lost } of counts)
    if (lostCount > 0) console.log(`from ${from} ${lostCount} lost: ${lost.at(0)} to ${lost.at(-1)}`);
  return outageMs(counts);
};
const reasons = ({ moves }: Gateway): string[] =>
  moves.map(({ from, path, reason }) => `${from ?? '-'}>${path} ${reason}`);
const timeline = ({ name, moves }: Gateway): string =>
  moves.map(({ time, device, path, reason }) => `${time} ${name} ${device} ${path} ${reason}`).join('\n');

test('UDP blocked, open, blocked one way, blocked, and an agent that is killed', { timeout: 240_000 }, async () => {
  await using world = await makeWorld({ blocked: 'all' });
  const [a, b] = world.gateways;
  await until('the pods reach each other over the relay', () => world.reaches());
  expect([a.path, b.path]).toEqual(['relay', 'relay']);
  expect([a.endpoint(), b.endpoint()]).toEqual([expect.stringMatching(/^127\./), expect.stringMatching(/^127\./)]);

  const up = await during(world, async () => {
    for (const gateway of world.gateways) gateway.block('none');
    console.log(`to direct ${Math.round(await world.untilBoth('direct'))} ms after UDP was open`);
  });
  expect(up).toEqual([0, 0]);
  await until('the keepers know the endpoints', () =>
    world.gateways.every((gateway) => gateway.unitEndpoints().join() === gateway.endpoint()),
  );
  expect([a.endpoint(), b.endpoint()]).toEqual(['198.51.100.2:51821', '198.51.100.1:51822']);

  const oneWay = await during(world, async () => {
    a.block('out');
    await world.untilBoth('relay');
  });
  console.log(
    `blocked one way: ${oneWay.join(' and ')} ms without traffic; ${reasons(a).at(-1)}, ${reasons(b).at(-1)}`,
  );
  expect(Math.max(...oneWay)).toBeLessThan(LONGEST_MS);
  a.block('none');
  await world.untilBoth('direct');

  const both = await during(world, async () => {
    for (const gateway of world.gateways) gateway.block('all');
    await world.untilBoth('relay');
  });
  console.log(`blocked: ${both.join(' and ')} ms without traffic; ${reasons(a).at(-1)}, ${reasons(b).at(-1)}`);
  expect(Math.max(...both)).toBeLessThan(LONGEST_MS);
  for (const gateway of world.gateways) gateway.block('none');
  await world.untilBoth('direct');

  // A last packet by the relay may still lead WireGuard there for a moment, and an agent adopts what it finds.
  await until('WireGuard sends directly at both ends', () =>
    world.gateways.every((one) => one.endpoint().startsWith('198.')),
  );
  const movesBefore = b.moves.length;
  const killed = await during(world, async () => {
    await a.killAgent();
    a.startAgent();
    await until('the new agent has found the path', () => a.path !== undefined);
  });
  console.log(`agent killed: ${reasons(a).join(', ')}; the other end: ${reasons(b).at(-1)}`);
  expect(killed).toEqual([0, 0]);
  expect(reasons(a)).toEqual(['->direct adopted']);
  expect(reasons(b).slice(movesBefore)).toEqual([]);
});

test(
  'a peer behind a NAT that cannot be called is reached at the address that its probes come from',
  { timeout: 120_000 },
  async () => {
    await using world = await makeWorld({ blocked: 'none', isHidden: true });
    const [a, b] = world.gateways;
    await until('the pods reach each other', () => world.reaches());
    await world.untilBoth('direct');
    // A last packet by the relay may still lead WireGuard there for a moment.
    await until('a sends to the NAT', () => /^198\.51\.100\.2:\d+$/.test(a.endpoint()));
    await until('b sends to a', () => b.endpoint() === '198.51.100.1:51822');
    const lost = await during(world, async () => {
      b.block('all');
      await world.untilBoth('relay');
    });
    console.log(`behind NAT, blocked: ${lost.join(' and ')} ms without traffic`);
    expect(Math.max(...lost)).toBeLessThan(LONGEST_MS);
    b.block('none');
    await world.untilBoth('direct');
  },
);

test.each([
  ['the lanes of the new key have paths of their own', 'none'],
  ['nothing waits at a relay that the new key cannot connect to', 'connections'],
] as const)('a key is exchanged under traffic: %s', { timeout: 120_000 }, async (_, blocked) => {
  await using world = await makeWorld({ blocked: 'none' });
  const [a] = world.gateways;
  await until('the pods reach each other', () => world.reaches());
  await world.untilBoth('direct');
  const lost = await during(world, async () => {
    a.block(blocked);
    a.rotate();
    await until('the new key is the current one, and the old one is gone', () => {
      const { generation, nextPublicKey, hasPrevious } = a.keys;
      return generation === 1 && nextPublicKey === undefined && hasPrevious !== true;
    });
    await world.untilBoth('direct');
  });
  console.log(world.gateways.map(timeline).join('\n'));
  expect(lost).toEqual([0, 0]);
  await until('both send to each other', () =>
    world.gateways.every((gateway, index) => gateway.endpoint().startsWith(`198.51.100.${2 - index}:`)),
  );
});
