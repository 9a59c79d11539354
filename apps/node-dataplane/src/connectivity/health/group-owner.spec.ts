import type { Lost } from '@unbounded/health';
import { expect, test } from 'vitest';
import type { GroupKernel, WeightedGroup } from './group-kernel.port.ts';
import { createGroupOwner } from './group-owner.ts';
import type { HealthGroup } from './messages.ts';
import type { Verdict } from './verdict-file.ts';

/** Groups in memory: the weights of each as it was last written, and how often that was. */
const memoryKernel = (looking?: Promise<void>) => {
  const weights = new Map<number, readonly number[]>();
  let writes = 0;
  const write = ({ index, members }: WeightedGroup): void => {
    weights.set(
      index,
      members.map(({ weight }) => weight),
    );
    writes++;
  };
  const kernel: GroupKernel = {
    largestGroup: 16,
    async ensure(groups) {
      await looking;
      groups().forEach(write);
      return [];
    },
    write,
    keepOnly: async (indexes) => {
      for (const index of weights.keys()) if (!indexes.has(index)) weights.delete(index);
    },
    close: async () => undefined,
  };
  return { kernel, weights, writes: () => writes };
};

const group = (index: number, ...nodes: readonly string[]): HealthGroup => ({
  name: `group ${index}`,
  index,
  family: 4,
  members: nodes.map((node, record) => ({ node, tier: 0, record })),
});
const healthy: Verdict = { state: 'Healthy', graceOver: true };
const down: Verdict = { state: 'Unhealthy', graceOver: true };
const neverAnswered: Verdict = { state: 'New', graceOver: true };

const owned = (states: Readonly<Record<string, Verdict>>, looking?: Promise<void>) => {
  const verdicts = new Map(Object.entries(states).map(([node, verdict]) => [`${node}/IPv4`, verdict]));
  const memory = memoryKernel(looking);
  const losses = new Map<string, Lost>();
  const owner = createGroupOwner(memory.kernel, {
    of: (peer) => verdicts.get(peer),
    lost: (peer) => losses.get(peer),
  });
  return { ...memory, verdicts, losses, owner };
};

test('a plan that is applied anew leaves out who is down, and whoever never answered', async () => {
  const { owner, verdicts, weights } = owned({ a: healthy, b: healthy, c: neverAnswered });
  const planned = group(1, 'a', 'b', 'c');
  await owner.apply([planned]);
  expect(weights.get(1)).toEqual([1, 1, 0]);
  verdicts.set('b/IPv4', down);
  owner.refresh('b/IPv4');
  expect(weights.get(1)).toEqual([1, 0, 0]);
  await owner.apply([planned, group(2, 'b', 'a')]); // any other change of the plan
  expect(weights.get(1)).toEqual([1, 0, 0]);
  expect(weights.get(2)).toEqual([0, 1]);
});

test('locators in a cluster of IPv4 alone leave a gateway that is down, as packets do', async () => {
  const { owner, verdicts, weights } = owned({ a: healthy, b: healthy });
  await owner.apply([group(1, 'a', 'b'), { ...group(2, 'a', 'b'), family: 6 }]);
  verdicts.set('a/IPv4', down);
  owner.refresh('a/IPv4');
  expect([weights.get(1), weights.get(2)]).toEqual([
    [0, 1],
    [0, 1],
  ]);
});

test('a family that is probed itself counts for itself alone', async () => {
  const { owner, verdicts, weights } = owned({ a: healthy, b: healthy });
  for (const node of ['a', 'b']) verdicts.set(`${node}/IPv6`, healthy);
  await owner.apply([group(1, 'a', 'b'), { ...group(2, 'a', 'b'), family: 6 }]);
  verdicts.set('a/IPv4', down);
  owner.refresh('a/IPv4');
  expect([weights.get(1), weights.get(2)]).toEqual([
    [0, 1],
    [1, 1],
  ]);
});

test('news of a peer that change no weight write nothing', async () => {
  const { owner, verdicts, writes } = owned({ a: healthy, b: healthy });
  await owner.apply([group(1, 'a', 'b')]);
  const before = writes();
  verdicts.set('a/IPv4', { ...healthy, state: 'Degraded' });
  owner.refresh('a/IPv4');
  owner.refresh('nobody/IPv4');
  expect(writes()).toBe(before);
});

test('a failover that comes while the groups are looked at is not undone by what they were before', async () => {
  const looked = Promise.withResolvers<void>();
  const { owner, verdicts, weights } = owned({ a: healthy, b: healthy }, looked.promise);
  const applied = owner.apply([group(1, 'a', 'b')]);
  verdicts.set('b/IPv4', down);
  owner.refresh('b/IPv4');
  looked.resolve();
  await applied;
  expect(weights.get(1)).toEqual([1, 0]);
});

test('a gateway that was given up is not used again because the other one is lost later, and both are that are lost together', async () => {
  const { owner, verdicts, losses, weights } = owned({ a: healthy, b: healthy });
  await owner.apply([group(1, 'a', 'b')]);
  const lose = (node: string, sinceMs: number): void => {
    verdicts.set(`${node}/IPv4`, down);
    losses.set(`${node}/IPv4`, { sinceMs, detectMs: 300 });
    owner.refresh(`${node}/IPv4`);
  };
  lose('a', 1000);
  lose('b', 1301);
  expect(weights.get(1)).toEqual([0, 1]);
  await owner.apply([group(1, 'a', 'b')]);
  expect(weights.get(1)).toEqual([0, 1]);
  lose('b', 1300);
  expect(weights.get(1)).toEqual([1, 1]);
});
