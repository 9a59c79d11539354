import { expect, test } from 'vitest';
import { until } from '../keys/rotation.scenario.ts';
import { during, LONGEST_MS } from './outage.testdata.ts';
import { type Gateway, makeWorld } from './paths.scenario.ts';

/**
 * Two sites behind routers with the real parts: agents, keepers, wireguard-go, the relay. Packets go at 1,000 a second. NAT, and keys that are
 * exchanged: paths.full.kernel.spec.ts.
 */

const reasons = ({ moves }: Gateway): string[] =>
  moves.map(({ from, path, reason }) => `${from ?? '-'}>${path} ${reason}`);

test('UDP blocked, open, blocked one way, blocked, and an agent that is killed', { timeout: 240_000 }, async () => {
  await using world = await makeWorld({ blocked: 'all' });
  const [a, b] = world.gateways;
  await until('the pods reach each other over the relay', () => world.reaches());
  await world.untilBoth('relay');
  await until('WireGuard sends to the relay’s proxies', () =>
    world.gateways.every((one) => one.endpoint().startsWith('127.')),
  );

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

  let movesBefore = 0;
  const killed = await during(world, async () => {
    // Late packets by the relay lead WireGuard there for moments, and an agent adopts what it finds.
    let looks = 0;
    await until('WireGuard sends directly at both ends for a second', () => {
      looks = world.gateways.every((one) => one.endpoint().startsWith('198.')) ? looks + 1 : 0;
      return looks === 10;
    });
    expect([a.path, b.path]).toEqual(['direct', 'direct']);
    movesBefore = b.moves.length;
    await a.killAgent();
    a.startAgent();
    await until('the new agent has found the path', () => a.path !== undefined);
  });
  console.log(`agent killed: ${reasons(a).join(', ')}; the other end: ${reasons(b).at(-1)}`);
  expect(killed).toEqual([0, 0]);
  expect(reasons(a)).toEqual(['->direct adopted']);
  expect(reasons(b).slice(movesBefore)).toEqual([]);
});
