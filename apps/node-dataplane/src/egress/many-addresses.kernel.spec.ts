import { expect, test } from 'vitest';
import { ADDRESSES } from './egress-network.testdata.ts';
import { MAX_LIVE } from './plan/tables.plan.ts';
import { openSectionBed, owned, pod, serving, steered } from './section-bed.testdata.ts';

const bed = openSectionBed();
const { worlds, open, settle, asked } = bed;

test('an owner that was given more addresses than a node can have serves all but the surplus, and names it', async () => {
  const more = Array.from({ length: MAX_LIVE + 1 }, (_, index) => ({
    address: `2001:db8:7::${(index + 1).toString(16)}`,
    ...{ epoch: 1, announce: 'None' as const },
  }));
  worlds.worker = { ...worlds.worker, slices: [steered('gateway')], pods: [pod('pod')] };
  worlds.gateway.slices = [serving({ owned: [...owned(), ...more] })];
  await (await open('worker')).pass();
  const gateway = await open('gateway');
  await settle('gateway', gateway);
  // A busy machine may have to list the tables again.
  const { report } = await gateway.pass();
  const last = more.slice(-2).map(({ address }) => address);
  expect(report.problems).toEqual([
    {
      reason: 'EgressAddressesTooMany',
      message: expect.stringContaining(
        `a node can have ${MAX_LIVE} of IPv6, and this one was given ${MAX_LIVE + 2}: nothing leaves with ${last.join(', ')};`,
      ),
    },
  ]);
  expect(await asked('pod')).toEqual(ADDRESSES.first);
});
