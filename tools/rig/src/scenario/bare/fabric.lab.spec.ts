import { afterAll, beforeAll, expect, test } from 'vitest';
import { down } from '../../substrate/down.ts';
import { layoutOf } from '../../layout/layout.ts';
import { machineState } from '../scenario.ts';
import { up } from '../../substrate/up.ts';
import { verify } from '../../cli/verify.ts';

/** The lab without Kubernetes on this machine's own kernel; what that kernel may lack is fabric.vm.spec.ts. */

let before: Record<string, string[]>;

beforeAll(async () => {
  await down();
  before = machineState();
}, 60_000);
afterAll(down, 60_000);

test('every pod reaches everything, over VXLAN and user-space WireGuard', { timeout: 120_000 }, async () => {
  const layout = layoutOf({ fabric: true, workers: 1, protocol: 'VXLAN' });
  await up(layout);
  expect(await verify(layout)).toBe(true);
});

test('down leaves the machine as it was before', async () => {
  await down();
  expect(machineState()).toEqual(before);
});
