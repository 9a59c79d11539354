import { ApiError, TransportError } from '@unbounded/kube';
import { expect, test } from 'vitest';
import type { Joining } from './joining.ts';
import { createPodChoice } from './pod-choice.ts';
import { annotated, podOf } from './tailnet-agent.testdata.ts';

const pod = podOf('web');
const fail = (error: Error) => async () => Promise.reject(error);
const away = new TransportError('connection refused');
const hang = (): Promise<never> => new Promise(() => undefined);

test.each<[string, () => Promise<never>, Joining, boolean]>([
  ['does not answer', fail(away), 'UnlessDeclined', true],
  ['does not answer', fail(away), 'OnRequest', true],
  ['does not answer', fail(away), 'Off', false],
  ['hangs', hang, 'OnRequest', true],
  ['hangs', hang, 'Off', false],
  ['fails', fail(new ApiError('GET', 503, {})), 'OnRequest', true],
  ['has no such pod', fail(new ApiError('GET', 404, {})), 'OnRequest', false],
  ['has another pod', fail(new Error('the API server has UID b')), 'OnRequest', false],
])('while the API server %s, the pod may join where there is a tailnet, if there is such a pod', async (...row) => {
  const [, annotations, joining, expected] = row;
  expect(await createPodChoice(() => joining, 20).mayJoin(pod, annotations)).toBe(expected);
});

test('what a pod asked for is remembered while the pod is there', async () => {
  let joining: Joining = 'OnRequest';
  const choice = createPodChoice(() => joining, 20);
  expect([choice.isKnown(pod), choice.mayBe(pod)]).toEqual([false, true]);
  expect(await choice.mayJoin(pod, async () => annotated(undefined))).toBe(false);
  expect(await choice.mayJoin(pod, fail(away))).toBe(false);
  expect([choice.isKnown(pod), choice.mayBe(pod)]).toEqual([true, false]);
  joining = 'UnlessDeclined';
  expect(choice.mayBe(pod)).toBe(true);
  choice.keepOnly(new Set([pod.uid]));
  expect(choice.isKnown(pod)).toBe(true);
  choice.keepOnly(new Set());
  expect(choice.isKnown(pod)).toBe(false);
});
