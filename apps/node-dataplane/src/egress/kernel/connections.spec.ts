import type { Connection, Conntrack } from '@unbounded/netlink';
import { expect, test } from 'vitest';
import type { EgressPlan } from '../plan/egress-plan.ts';
import { planFor, pods, route } from '../egress-plans.testdata.ts';
import { createConnections } from './connections.ts';

const POD = '100.65.30.9';
const PARTNER = '198.51.100.7';

const own = (host: 'first' | 'second' | undefined): EgressPlan =>
  planFor('worker', {
    steered:
      host === undefined
        ? []
        : [
            {
              ...pods('pod', 'worker', [route(host, 'gateway')]),
              pods: [{ uid: 'u', node: 'worker', addresses: [POD] }],
            },
          ],
  });

/** Of the pod, answered to that address. */
const connection = (answersTo: string): Connection =>
  ({
    original: { source: POD, destination: PARTNER },
    reply: { source: PARTNER, destination: answersTo },
  }) as Connection;
const [SELECTED, AS_ITS_NODE] = [connection(POD), connection('10.0.0.1')];

const openBed = (before: EgressPlan | undefined, there: Connection[]) => {
  const listed: string[][] = [];
  const bed = { meanwhile: (): void => undefined, failing: false };
  const conntrack = {
    async listFrom(sources: readonly string[]) {
      listed.push([...sources]);
      await Promise.resolve();
      bed.meanwhile();
      if (bed.failing) throw new Error('ENOBUFS');
      return [...there];
    },
    delete: async (gone: Connection) => void there.splice(there.indexOf(gone), 1),
  } as unknown as Conntrack;
  return Object.assign(bed, { listed, there, connections: createConnections(conntrack, before) });
};

const follow = (bed: ReturnType<typeof openBed>, plan: EgressPlan): void => {
  bed.connections.begins(plan);
  bed.connections.inForce(plan, true);
};

test('of pods that a plan changes, connections of before end; without a change nothing is listed', async () => {
  const bed = openBed(own(undefined), [SELECTED, AS_ITS_NODE]);
  follow(bed, own('first'));
  await bed.connections.settle();
  follow(bed, own('first'));
  await bed.connections.settle();
  expect(bed.there).toEqual([SELECTED]);
  expect(bed.listed).toEqual([[POD]]);
});

test('a pod that is changed there and back has no connection of the time between', async () => {
  const bed = openBed(own('first'), [SELECTED, AS_ITS_NODE]);
  follow(bed, own(undefined));
  follow(bed, own('first'));
  await bed.connections.settle();
  expect(bed.there).toEqual([SELECTED]);
});

test('of a plan that begins while connections are listed, none ends; those from before it end behind it', async () => {
  const bed = openBed(own('first'), [SELECTED, AS_ITS_NODE]);
  follow(bed, own(undefined));
  bed.meanwhile = () => bed.connections.begins(own('first'));
  await bed.connections.settle();
  expect(bed.there).toEqual([SELECTED, AS_ITS_NODE]);
  bed.connections.inForce(own('first'), true);
  await bed.connections.settle();
  expect(bed.there).toEqual([SELECTED]);
});

test('a plan that the kernel did not take wholly is followed by another look', async () => {
  const bed = openBed(own(undefined), [AS_ITS_NODE]);
  const half = (): void => {
    bed.connections.begins(own('first'));
    bed.connections.inForce(own('first'), false);
  };
  half();
  await bed.connections.settle();
  bed.there.push(AS_ITS_NODE); // packets went on as before
  follow(bed, own('first'));
  await bed.connections.settle();
  expect(bed.there).toEqual([]);
  half();
  bed.there.push(SELECTED);
  follow(bed, own(undefined)); // given up
  await bed.connections.settle();
  expect(bed.there).toEqual([]);
});

test('what could not be listed is looked at the next time', async () => {
  const bed = openBed(own(undefined), [AS_ITS_NODE]);
  follow(bed, own('first'));
  bed.failing = true;
  await expect(bed.connections.settle()).rejects.toThrow('ENOBUFS');
  bed.failing = false;
  await bed.connections.settle();
  expect(bed.there).toEqual([]);
});
