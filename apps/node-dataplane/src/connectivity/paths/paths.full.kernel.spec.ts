import { expect, test } from 'vitest';
import { until } from '../keys/rotation.scenario.ts';
import { during, LONGEST_MS } from './outage.testdata.ts';
import { type Gateway, makeWorld } from './paths.scenario.ts';

/** What paths.kernel.spec.ts leaves out: a peer behind NAT, and keys that are exchanged. */

const timeline = ({ name, moves }: Gateway): string =>
  moves.map(({ time, device, path, reason }) => `${time} ${name} ${device} ${path} ${reason}`).join('\n');

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
