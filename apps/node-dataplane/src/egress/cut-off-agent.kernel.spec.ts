import { setTimeout as sleep } from 'node:timers/promises';
import type { Cluster } from '@unbounded/kube';
import { expect, test } from 'vitest';
import { ADDRESSES } from './egress-network.testdata.ts';
import { NONE, openSectionBed, pod, serving, steered } from './section-bed.testdata.ts';

/** An owner whose agent starts again, while the API server answers and while it does not. */

const bed = openSectionBed();
const { worlds, sections, open, settle, asked } = bed;

/** An agent renews once a second: nothing that holds up this process lasts as long. */
const HOLD_MS = 4000;
/** So many take longer. */
const STARTS = 3;

const apiServer = (isAway: boolean): Cluster => {
  const answer = async () => {
    if (isAway) throw new Error('no route to host');
    return { spec: { clusterIPs: ['10.96.0.1'] } };
  };
  return { client: () => ({ get: answer, mergePatch: answer }) } as unknown as Cluster;
};

const stopGateway = async (): Promise<void> => {
  await sections.pop()!.stop();
};

/** The gateway serves the pod; its agent has just stopped. */
const serveAndStop = async (): Promise<void> => {
  worlds.worker = { ...worlds.worker, slices: [steered('gateway')], pods: [pod('pod')] };
  worlds.gateway = { ...worlds.gateway, slices: [serving()], holdMs: HOLD_MS };
  await (await open('worker')).pass();
  await settle('gateway', await open('gateway'));
  expect(await asked('pod')).toEqual(ADDRESSES.first);
  await stopGateway();
};

test('cut off, it renews nothing by starting again and again', async () => {
  await serveAndStop();
  worlds.gateway.cluster = apiServer(true);
  for (let starts = 0; starts < STARTS; starts++) {
    await (await open('gateway')).pass();
    await sleep(HOLD_MS / 2);
    await stopGateway();
  }
  expect(await asked('pod', 0.5)).toEqual(NONE);
  worlds.gateway.cluster = undefined;
}, 20_000);

test('one that the API server answers goes on, with what the kernel held meanwhile', async () => {
  await serveAndStop();
  worlds.gateway.cluster = apiServer(false);
  for (let starts = 0; starts < STARTS; starts++) {
    await (await open('gateway')).pass();
    expect(await asked('pod')).toEqual(ADDRESSES.first);
    await sleep(1500); // it renews meanwhile
    await stopGateway();
  }
  expect(await asked('pod')).toEqual(ADDRESSES.first);
  worlds.gateway.cluster = undefined;
}, 20_000);
