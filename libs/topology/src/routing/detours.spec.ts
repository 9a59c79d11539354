import { firstAddress, hostPrefix, parsePrefix, type Prefix } from '@unbounded/ip';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { accepts, failureOf, type Network, networkOf } from '../explain/forwarding-simulation.ts';
import { anyConnectedCluster } from '../random-cluster.testdata.ts';
import { cluster } from '../testdata.ts';
import type { Member } from '../world/world.ts';

const podOf = (member: Member, family: 4 | 6): Prefix | undefined => {
  const block = member.podCidrs.find((own) => own.family === family);
  return block && hostPrefix(firstAddress(block));
};

interface Detour {
  readonly gateway: string;
  readonly by: string;
  readonly source: Prefix;
  readonly target: Prefix;
}

/** Every way that a gateway has by another of its pool, with packets of the workers that it serves and that go there. */
const poolDetours = ({ world, members, plans }: Network): Detour[] =>
  [...plans.values()].flatMap(({ node, groups, servedSites }) =>
    groups.flatMap(({ family, site, members: hops }) => {
      const mates = hops.filter((hop) => members.get(hop.node)!.pool === members.get(node)!.pool);
      const goesThere = (worker: Member): boolean =>
        servedSites.includes(worker.site) && plans.get(worker.name)!.groups.some((group) => group.site === site);
      const podsOf = (isIn: (worker: Member) => boolean): Prefix[] =>
        world.workers.filter(isIn).flatMap((worker) => podOf(worker, family) ?? []);
      const targets = podsOf((worker) => worker.site === site);
      return mates.flatMap(({ node: by }) =>
        podsOf(goesThere).flatMap((source) => targets.map((target) => ({ gateway: node, by, source, target }))),
      );
    }),
  );

/** Before random ones some of a fixed seed, among which what is looked for occurs: one random cluster in twenty has farther pools. */
const examples = fc.sample(anyConnectedCluster, { seed: 2, numRuns: 30 }).map((objects): [typeof objects] => [objects]);

test('what a gateway hands to another of its pool is taken there, and arrives', () => {
  let seen = 0;
  fc.assert(
    fc.property(anyConnectedCluster, (objects) => {
      const network = networkOf(objects);
      for (const { gateway, by, source, target } of poolDetours(network)) {
        seen++;
        expect(accepts(network, by, gateway, source), `${gateway} -> ${by}`).toBe(true);
        expect(failureOf(network, [gateway, by], target, source)).toBeUndefined();
      }
    }),
    { numRuns: 150, examples },
  );
  expect(seen).toBeGreaterThan(0);
});

test('a worker’s farther pools take its packets when the nearer fail', () => {
  let farther = 0;
  fc.assert(
    fc.property(anyConnectedCluster, (objects) => {
      const network = networkOf(objects);
      for (const worker of network.world.workers) {
        for (const { family, site, members } of network.plans.get(worker.name)!.groups) {
          const source = podOf(worker, family);
          const targets = network.world.workers.filter((other) => other.site === site);
          for (const { node, tier } of source ? members : []) {
            for (const target of targets.flatMap((other) => podOf(other, family) ?? [])) {
              if (tier > 0) farther++;
              expect(accepts(network, node, worker.name, source!)).toBe(true);
              expect(failureOf(network, [worker.name, node], target, source!)).toBeUndefined();
            }
          }
        }
      }
    }),
    { numRuns: 150, examples },
  );
  expect(farther).toBeGreaterThan(0);
});

test('where all pools are peered a gateway detours through others, and both ends of the detour take it', () => {
  const network = networkOf(cluster({ sites: 5, gateways: 1, workers: 1 }));
  const { groups } = network.plans.get('s2-g1')!;
  const group = groups.find(({ site }) => site === 's4')!;
  expect(group.members.map(({ tier, node }) => `${tier} ${node}`)).toEqual(['0 s4-g1', '1 s1-g1', '1 s3-g1']);
  const [source, target] = [parsePrefix('100.66.31.1/32'), parsePrefix('100.68.31.1/32')];
  for (const { node } of group.members) {
    expect(accepts(network, node, 's2-g1', source)).toBe(true);
    expect(failureOf(network, ['s2-g1', node], target, source)).toBeUndefined();
  }
});
