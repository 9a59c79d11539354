import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { LOCATORS, type LocatorLab, startLocatorLab } from './locators-lab.testdata.ts';

/** Frames of stretched L2 between nodes whose pods and underlay have IPv4 alone. */
describe.each(['ebpf', 'netlink'] as const)('by %s', (dataplane) => {
  let lab: LocatorLab;
  let problems: readonly string[];
  beforeAll(async () => {
    lab = startLocatorLab(dataplane);
    problems = [...(await lab.apply('without')), ...(await lab.apply('with locators'))]; // devices are up without IPv6 then
  }, 120_000);
  afterAll(() => lab.close());

  const [w1, w2] = [`${LOCATORS.w1}::`, `${LOCATORS.w2}::2:0:0`];

  test('nothing is missing for IPv6 where no pod has it', () => {
    expect(problems).toEqual([]);
  });

  test('a packet from the locator of a node comes out at the device of another, through a gateway', async () => {
    lab.send('w1', w1, w2);
    expect(await lab.arrived('w2', 1)).toBe(1);
    lab.send('w2', `${LOCATORS.w2}::`, `${LOCATORS.w1}::2:0:0`);
    expect(await lab.arrived('w1', 1)).toBe(1);
    lab.send('g1', `${LOCATORS.g1}::`, w2);
    expect(await lab.arrived('w2', 2)).toBe(2);
  });

  test('none arrives with a source that is not of its sender, nor from beside the overlay', async () => {
    const before = await lab.arrived('w2', 0);
    lab.send('w1', `${LOCATORS.g1}::`, w2);
    lab.send('w1', 'fd4c:0:0:1999::', w2);
    lab.send('w1', 'fd00:1::5', w2);
    lab.send({ strangerTo: 'w2' }, w1, w2);
    lab.send({ strangerTo: 'w2' }, 'fd00:1::5', w2);
    lab.send('w1', w1, w2);
    expect(await lab.arrived('w2', before + 1)).toBe(before + 1);
  });
});
