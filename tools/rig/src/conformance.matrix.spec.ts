import { afterEach, expect, test } from 'vitest';
import { CONFORMANCE, conformance, DUAL_STACK } from './conformance.ts';
import { down } from './down.ts';
import { layoutOf } from './layout.ts';
import { up } from './up.ts';

/** The unmodified Kubernetes end-to-end suite, with pods in both sites. */

afterEach(down, 60_000);

test('every [sig-network] conformance spec passes', { timeout: 1_800_000 }, async () => {
  await down();
  const layout = layoutOf({});
  await up(layout);
  expect(await conformance(layout, CONFORMANCE)).toBe(true);
});

test('every [Feature:IPv6DualStack] spec passes but that of SCTP', { timeout: 1_800_000 }, async () => {
  await down();
  const layout = layoutOf({ ip: 'dual' });
  await up(layout);
  expect(await conformance(layout, DUAL_STACK)).toBe(true);
});
