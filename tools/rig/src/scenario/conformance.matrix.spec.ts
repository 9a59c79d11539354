import { afterEach, expect, test } from 'vitest';
import { CONFORMANCE, conformance, DUAL_STACK } from '../substrate/cluster/conformance.ts';
import { down } from '../substrate/down.ts';
import { layoutOf } from '../layout/layout.ts';
import { DATAPLANES } from '../layout/options.ts';
import { up } from '../substrate/up.ts';

/** The unmodified Kubernetes end-to-end suite, with pods in both sites. */

const TEST = { timeout: 1_800_000 };

afterEach(down, 60_000);

test.each(DATAPLANES)('every [sig-network] conformance spec passes over %s', TEST, async (dataplane) => {
  await down();
  const layout = layoutOf({ dataplane });
  await up(layout);
  expect(await conformance(layout, CONFORMANCE)).toBe(true);
});

test('every [Feature:IPv6DualStack] spec passes but that of SCTP', TEST, async () => {
  await down();
  const layout = layoutOf({ ip: 'dual' });
  await up(layout);
  expect(await conformance(layout, DUAL_STACK)).toBe(true);
});
