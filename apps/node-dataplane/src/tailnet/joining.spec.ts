import { tailnetAnnotations, type TailnetSettings } from '@unbounded/crds';
import { expect, test } from 'vitest';
import type { VersionedPlan } from '../section.port.ts';
import { askedBy, createKeptJoining, type Joining, joiningOf, mayJoin } from './joining.ts';

const rule = (join: 'OnRequest' | 'UnlessDeclined') => ({ namespaceSelector: {}, join });
const settings = (...rules: TailnetSettings['rules']): TailnetSettings => ({
  credentials: { authKeySecret: 'key' },
  rules,
});

test.each<[string, TailnetSettings | undefined, Joining]>([
  ['without a tailnet', undefined, 'Off'],
  ['without rules', settings(), 'OnRequest'],
  ['with rules for pods that ask', settings(rule('OnRequest')), 'OnRequest'],
  ['with a rule for all but those that decline', settings(rule('OnRequest'), rule('UnlessDeclined')), 'UnlessDeclined'],
])('a Mesh %s', (_, of, expected) => {
  expect(joiningOf(of)).toBe(expected);
});

test.each<[string | undefined, Joining, boolean]>([
  ['true', 'Off', true], // it hears from the tailnet agent why it is no device
  ['true', 'OnRequest', true],
  ['true', 'UnlessDeclined', true],
  [' true ', 'OnRequest', true],
  ['false', 'Off', false],
  ['false', 'OnRequest', false],
  ['false', 'UnlessDeclined', false],
  ['yes', 'UnlessDeclined', false], // refused by an Event, whatever the rules say
  ['', 'UnlessDeclined', false],
  [undefined, 'Off', false],
  [undefined, 'OnRequest', false],
  [undefined, 'UnlessDeclined', true],
])('annotation %j, rules %s: may join: %s', (annotation, joining, expected) => {
  const annotations = annotation === undefined ? {} : { [tailnetAnnotations.join]: annotation };
  expect(mayJoin(askedBy(annotations), joining)).toBe(expected);
});

test('what the Mesh last said holds for the next agent, until it has read the Mesh itself', () => {
  let file: VersionedPlan | undefined;
  let writes = 0;
  const kept = {
    read: () => file,
    write: (plan: VersionedPlan) => {
      file = plan;
      writes += 1;
    },
  };
  const first = createKeptJoining(kept);
  expect(first.current()).toBe('Off');
  first.update('UnlessDeclined');
  first.update('UnlessDeclined');
  expect([first.current(), writes]).toEqual(['UnlessDeclined', 1]);
  const second = createKeptJoining(kept);
  expect(second.current()).toBe('UnlessDeclined');
  second.update('Off');
  expect([second.current(), file]).toEqual(['Off', { version: 1, plan: 'Off' }]);
  for (const unusable of [
    { version: 2, plan: 'UnlessDeclined' },
    { version: 1, plan: { rules: [] } },
  ]) {
    file = unusable;
    expect(createKeptJoining(kept).current()).toBe('Off');
  }
});
