import { describe, expect, test } from 'vitest';
import type { PodAttachment } from '../attachment/pods.ts';
import type { Section } from '../section.port.ts';
import { ADDRESSES } from './egress-network.testdata.ts';
import { openSectionBed, pod, serving, steered } from './section-bed.testdata.ts';

/** A pod that no rule selects gets the address of one that was selected and is gone, before any pass has seen that. */

const bed = openSectionBed();
const { worlds, sections, open, settle, asked } = bed;

const newcomer: PodAttachment = { ...pod('pod'), name: 'newcomer', uid: 'uid-newcomer', containerId: 'newcomer' };

const add = async (section: Section, attachment: PodAttachment): Promise<void> => {
  const annotations = async () => ({});
  await section.hook!.add!({ ...attachment, annotations }, AbortSignal.timeout(5000));
};

const serve = async () => {
  worlds.worker = { ...worlds.worker, slices: [steered('gateway')], pods: [pod('pod'), pod('other')] };
  worlds.gateway.slices = [serving()];
  const worker = await open('worker');
  await worker.pass();
  await settle('gateway', await open('gateway'));
  expect(await asked('pod')).toEqual(ADDRESSES.first);
  return worker;
};

test('its first packet leaves with the address of its node', async () => {
  const worker = await serve();
  worlds.worker.pods = [newcomer, pod('other')];
  await add(worker, newcomer);
  expect(await asked('pod')).toEqual(ADDRESSES.worker);
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
  expect(await asked('pod')).toEqual(ADDRESSES.worker);
});

test('the start of a pod with another address waits for nothing', async () => {
  const worker = await serve();
  worlds.worker.slices = [];
  await add(worker, pod('other'));
  expect(await asked('pod')).toEqual(ADDRESSES.first); // no pass has been
});

describe('beside another pod that goes on with the address', () => {
  /** Numbers of all that is in the table, but for elements: what is made anew has another one. */
  const handles = (): string[] =>
    bed.network
      .run('worker', 'nft', '-a', 'list', 'table', 'inet', 'unbounded_egress')
      .match(/# handle \d+/g)!
      .sort();

  const serveBoth = async () => {
    const both = steered('gateway');
    const [entry] = both.spec.pods!;
    const pods = [entry!, { ...entry!, uid: 'uid-other', name: 'other' }];
    worlds.worker = { ...worlds.worker, slices: [{ ...both, spec: { ...both.spec, pods } }] };
    worlds.worker.pods = [pod('pod'), pod('other')];
    const [source] = serving().spec.sources!;
    worlds.gateway.slices = [
      serving({ sources: [source!, { ...source!, uid: 'uid-other', addresses: [...ADDRESSES.other] }] }),
    ];
    const worker = await open('worker');
    await worker.pass();
    await settle('gateway', await open('gateway'));
    expect([await asked('pod'), await asked('other')]).toEqual([ADDRESSES.first, ADDRESSES.first]);
    return worker;
  };

  test('a pod comes and goes by elements of sets alone, and a pass finds all as it is to be', async () => {
    const worker = await serveBoth();
    const before = handles();
    worlds.worker.pods = [newcomer, pod('other')];
    await add(worker, newcomer);
    expect([await asked('pod'), await asked('other')]).toEqual([ADDRESSES.worker, ADDRESSES.first]);
    await worker.pass();
    expect(handles()).toEqual(before);
    worlds.worker.pods = [pod('pod'), pod('other')];
    await worker.pass();
    expect([await asked('pod'), await asked('other')]).toEqual([ADDRESSES.first, ADDRESSES.first]);
    expect(handles()).toEqual(before);
  });

  test.each([
    ['the table is gone', ['nft', 'delete', 'table', 'inet', 'unbounded_egress'], true],
    ['a set lost its elements', ['nft', 'flush', 'set', 'inet', 'unbounded_egress', 'steered_0_ip'], false],
  ])('where %s, the pod that starts is decided about all the same', async (_, damage, isWrittenAnew) => {
    const worker = await serveBoth();
    bed.network.run('worker', ...damage);
    worlds.worker.pods = [newcomer, pod('other')];
    await add(worker, newcomer);
    expect(await asked('pod')).toEqual(ADDRESSES.worker);
    if (isWrittenAnew) expect(await asked('other')).toEqual(ADDRESSES.first);
    await worker.pass();
    expect([await asked('pod'), await asked('other')]).toEqual([ADDRESSES.worker, ADDRESSES.first]);
  });

  test('a pod that is in the tables already starts only when they are there', async () => {
    const worker = await serveBoth();
    bed.network.run('worker', 'nft', 'delete', 'table', 'inet', 'unbounded_egress');
    // The API server said that no rule selects it; the slices, which came meanwhile, list it.
    await add(worker, pod('pod'));
    expect([await asked('pod'), await asked('other')]).toEqual([ADDRESSES.first, ADDRESSES.first]);
  });
});
