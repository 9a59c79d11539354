import { expect, test } from 'vitest';
import type { PodAttachment } from '../attachment/pods.ts';
import { createPodDecisions } from './pod-decisions.ts';

const pod = (uid: string) => ({ namespace: 'shop', name: uid, uid, addresses: [] }) as unknown as PodAttachment;
const labelsOf = async () => ({});

test('pods of which it is not known are asked about once at a time, however often that is called for', async () => {
  const asked: string[] = [];
  let answer: (selection: 'none' | 'selected') => void = () => undefined;
  const ask = ({ uid }: { readonly uid: string }): Promise<'none' | 'selected'> => {
    asked.push(uid);
    return new Promise((resolve) => (answer = resolve));
  };
  const decisions = createPodDecisions({ ask, labelsOf, free: ['free'] });
  decisions.listed(new Set(['listed']));
  const pods = ['free', 'listed', 'open'].map(pod);
  const first = decisions.decideOpen(pods);
  expect(await decisions.decideOpen(pods)).toBe(false);
  expect(asked).toEqual(['open']);
  answer('none');
  expect(await first).toBe(true);
  expect(decisions.selectionOf('open')).toBe('none');
  expect(await decisions.decideOpen(pods)).toBe(false);
  expect(asked).toEqual(['open']);
});

test('where the API server does not answer, they are asked about again', async () => {
  let asked = 0;
  const ask = async (): Promise<never> => {
    asked++;
    throw new Error('away');
  };
  const decisions = createPodDecisions({ ask, labelsOf, free: [] });
  expect([await decisions.decideOpen([pod('a')]), await decisions.decideOpen([pod('a')])]).toEqual([false, false]);
  expect(asked).toBe(2);
  expect(decisions.selectionOf('a')).toBe('unknown');
});

test('one that a rule selects is asked about once a second, and at once when slices list it no more', async () => {
  let nowMs = 0;
  const asked: number[] = [];
  const ask = async (): Promise<'selected'> => {
    asked.push(nowMs);
    return 'selected';
  };
  const decisions = createPodDecisions({ ask, labelsOf, free: [], now: () => nowMs });
  await decisions.decide(pod('a'));
  for (nowMs = 100; nowMs <= 1500; nowMs += 100) await decisions.decideOpen([pod('a')]);
  expect(asked).toEqual([0, 1000]);
  decisions.listed(new Set(['a']));
  decisions.listed(new Set());
  await decisions.decideOpen([pod('a')]);
  expect(asked).toEqual([0, 1000, 1600]);
});

test('one that the slices list is selected without a question; once they list it no more it is asked about', async () => {
  const asked: string[] = [];
  const ask = async ({ uid }: { readonly uid: string }): Promise<'none'> => {
    asked.push(uid);
    return 'none';
  };
  const decisions = createPodDecisions({ ask, labelsOf, free: [] });
  decisions.listed(new Set(['a']));
  decisions.keepOnly(new Set()); // it is not attached yet
  expect([decisions.isListed('a'), await decisions.decide(pod('a')), asked]).toEqual([true, 'selected', []]);
  decisions.listed(new Set());
  expect([decisions.isListed('a'), decisions.selectionOf('a')]).toEqual([false, 'unknown']);
  expect([await decisions.decide(pod('a')), asked]).toEqual(['none', ['a']]);
});
