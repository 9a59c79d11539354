import { expect, test } from 'vitest';
import { ADDRESSES } from './egress-network.testdata.ts';
import { NONE, openSectionBed, pod, serving, steered } from './section-bed.testdata.ts';

/** An agent that starts again and has no objects yet: pods that started shortly before it ended, and that its kept plan does not know. */

const bed = openSectionBed();
const { worlds, sections, open, settle, asked } = bed;

const restartWith = async (...pods: ReturnType<typeof pod>[]): Promise<void> => {
  await sections.shift()!.stop();
  worlds.worker = { ...worlds.worker, pods, slices: undefined };
  await (await open('worker')).pass();
};

const serve = async (...names: ('pod' | 'other')[]): Promise<void> => {
  worlds.worker = { ...worlds.worker, slices: [steered('gateway')], pods: names.map(pod) };
  worlds.gateway.slices = [serving()];
  const worker = await open('worker');
  await worker.pass();
  await settle('gateway', await open('gateway'));
  await worker.pass(); // it is known by now that no rule selects the others
  expect(await asked('pod')).toEqual(names.includes('pod') ? ADDRESSES.first : ADDRESSES.worker);
};

test('of a pod that is not in the kept plan nothing leaves, and others go on', async () => {
  await serve('pod');
  await restartWith(pod('pod'), pod('other'));
  expect([await asked('pod'), await asked('other', 0.5)]).toEqual([ADDRESSES.first, NONE]);
});

test('a pod of which it was kept that no rule selects it leaves with the address of its node', async () => {
  await serve('pod', 'other');
  await restartWith(pod('pod'), pod('other'));
  expect([await asked('pod'), await asked('other')]).toEqual([ADDRESSES.first, ADDRESSES.worker]);
});

test('of a pod that is gone nothing is steered, whoever has its address', async () => {
  await serve('pod', 'other');
  await restartWith(pod('other'));
  expect(await asked('pod')).toEqual(ADDRESSES.worker);
});
