import { expect, test } from 'vitest';
import type { PodAttachment } from '../attachment/pods.ts';
import type { Section } from '../section.port.ts';
import { ADDRESSES } from './egress-network.testdata.ts';
import { openSectionBed, pod, serving, steered } from './section-bed.testdata.ts';

/** A pod that no rule selects gets the address of one that was selected and is gone, before any pass has seen that. */

const bed = openSectionBed();
const { worlds, sections, open, settle, asked } = bed;

const newcomer: PodAttachment = { ...pod('pod'), name: 'newcomer', uid: 'uid-newcomer', containerId: 'newcomer' };

const add = async (section: Section, attachment: PodAttachment): Promise<void> => {
  const metadata = async () => ({ labels: {}, annotations: {} });
  await section.hook!.add!({ ...attachment, metadata }, AbortSignal.timeout(5000));
};

const serve = async () => {
  worlds.worker = { ...worlds.worker, slices: [steered('gateway')], pods: [pod('pod'), pod('other')] };
  worlds.gateway.slices = [serving()];
  const worker = await open('worker');
  await worker.pass();
  await settle('gateway', await open('gateway'));
  expect(asked('pod')).toEqual(ADDRESSES.first);
  return worker;
};

test('its first packet leaves with the address of its node', async () => {
  const worker = await serve();
  worlds.worker.pods = [newcomer, pod('other')];
  await add(worker, newcomer);
  expect(asked('pod')).toEqual(ADDRESSES.worker);
});

test.each([
  ['has', false],
  ['lost', true],
])('the same where the agent has just started, and %s the plan of before', async (_, isLost) => {
  await serve();
  await sections.shift()!.stop();
  if (isLost) worlds.worker.kept = undefined;
  worlds.worker.pods = [newcomer, pod('other')];
  await add(await open('worker'), newcomer);
  expect(asked('pod')).toEqual(ADDRESSES.worker);
});

test('the start of a pod with another address waits for nothing', async () => {
  const worker = await serve();
  worlds.worker.slices = [];
  await add(worker, pod('other'));
  expect(asked('pod')).toEqual(ADDRESSES.first); // no pass has been
});
