import { findMember, parseWorld, planNode } from '@unbounded/topology';
import { cluster, sizeOf, slice, worker } from '@unbounded/topology/testdata';

import { median, ROUNDS } from './rounds.ts';

/**
 * What an agent holds and how long it thinks, from the objects of the whole network to the plan of its node, as other
 * sites grow: `tools/bench plan`. See ../README.md.
 */

interface Shape {
  readonly sites: number;
  /** Gateways included, in every site but the node's own, which has 50. */
  readonly nodesOfOthers: number;
}

const GATEWAYS = 2;
const OWN_NODES = 50;
const OWN_SITE = 's7';
/** Next to this one the others are read. */
const REFERENCE: Shape = { sites: 100, nodesOfOthers: 10 };
const SHAPES: readonly Shape[] = [
  { sites: 10, nodesOfOthers: 50 },
  REFERENCE,
  { sites: 100, nodesOfOthers: 50 },
  { sites: 100, nodesOfOthers: 200 },
];

const objectsOf = ({ sites, nodesOfOthers }: Shape) => {
  const objects = cluster({ sites, gateways: GATEWAYS, workers: nodesOfOthers - GATEWAYS, protocol: 'VXLAN' });
  const own = Array.from({ length: OWN_NODES - GATEWAYS }, (_, index) => worker(7, index + 1));
  return {
    ...objects,
    slices: objects.slices.map((each) => (each.siteName === OWN_SITE ? slice(7, own) : each)),
  };
};

interface Turn {
  readonly parseMs: number;
  readonly planMs: number;
  readonly size: number;
}

const turn = (objects: ReturnType<typeof objectsOf>, node: string): Turn => {
  const began = performance.now();
  const world = parseWorld(objects);
  const parsed = performance.now();
  const plan = planNode(world, { member: findMember(world, node)!, underlayMtuBytes: 1500 });
  return { parseMs: parsed - began, planMs: performance.now() - parsed, size: sizeOf(plan) };
};

/** Shapes take turns, so that all of them see the same machine; the first round warms up. */
const measure = (node: string): Turn[][] => {
  const worlds = SHAPES.map(objectsOf);
  const turns: Turn[][] = SHAPES.map(() => []);
  for (let round = 0; round <= ROUNDS; round++)
    for (const [index, objects] of worlds.entries()) {
      const one = turn(objects, node);
      if (round > 0) turns[index]!.push(one);
    }
  return turns;
};

console.log(`Medians of ${ROUNDS} rounds; a node of a site with ${OWN_NODES} nodes, ${GATEWAYS} of them gateways.\n`);
console.log(
  '| node | sites | nodes in each other site | objects in the plan | plan ms | of the second | all of it read ms |',
);
console.log('|---|---|---|---|---|---|---|');
for (const [role, node] of [
  ['worker', `${OWN_SITE}-w3`],
  ['gateway', `${OWN_SITE}-g1`],
] as const) {
  const turns = measure(node);
  const reference = turns[SHAPES.indexOf(REFERENCE)]!;
  for (const [index, { sites, nodesOfOthers }] of SHAPES.entries()) {
    const own = turns[index]!;
    const planMs = median(own.map((each) => each.planMs));
    const ratio = median(own.map((each, round) => each.planMs / reference[round]!.planMs));
    const readMs = median(own.map(({ parseMs }) => parseMs));
    const cells = [role, sites, nodesOfOthers, own[0]!.size, planMs.toFixed(1), ratio.toFixed(2), readMs.toFixed(1)];
    console.log(`| ${cells.join(' | ')} |`);
  }
}
