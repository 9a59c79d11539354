import { expect, test } from 'vitest';
import { ADDRESSES } from './egress-network.testdata.ts';
import { planFor, pods, route } from './egress-plans.testdata.ts';
import { createSteeredAddresses } from './steered-addresses.ts';

const planOf = (host: 'pod' | 'other') =>
  planFor('worker', { steered: [pods(host, 'worker', [route('first', 'gateway')])] });

test('until a plan is in force, those of what was there before count too', () => {
  const steered = createSteeredAddresses(ADDRESSES.pod);
  const held = (): boolean[] => [steered.holds(ADDRESSES.pod), steered.holds([ADDRESSES.other[1]])];
  expect(held()).toEqual([true, false]);
  steered.begins(planOf('other'));
  expect(held()).toEqual([true, true]);
  steered.inForce(planOf('other'));
  expect(held()).toEqual([false, true]);
});
