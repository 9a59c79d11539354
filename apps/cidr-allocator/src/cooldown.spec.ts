import { formatPrefix, parsePrefix } from '@unbounded/ip';
import { annotations } from '@unbounded/crds';
import type { Node } from '@unbounded/kube';
import { nodeObject } from '@unbounded/testing';
import { expect, test } from 'vitest';

import { createCooldown, releasedBy } from './cooldown.ts';

test('a released block cools down for its time, each for its own', () => {
  const clock = { ms: 0 };
  const cooldown = createCooldown(60_000, () => clock.ms);
  const cooling = () => cooldown.cooling().map(formatPrefix);
  cooldown.released([parsePrefix('100.64.0.0/24')]);
  clock.ms = 30_000;
  cooldown.released([parsePrefix('100.64.1.0/24')]);
  clock.ms = 59_999;
  expect(cooling()).toEqual(['100.64.0.0/24', '100.64.1.0/24']);
  clock.ms = 60_000;
  expect(cooling()).toEqual(['100.64.1.0/24']);
  clock.ms = 90_000;
  expect(cooling()).toEqual([]);
});

test('what a Node had and has no more is released, also where another one of its name came meanwhile', () => {
  const podCIDRs = ['100.64.0.0/24', 'fd00::/64'];
  const annotated = { [annotations.l2Locator]: 'fd00:1:1:1::/64' };
  type Stated = Partial<Parameters<typeof nodeObject>[0]>;
  const node = (stated: Stated, uid: string): Node => {
    const { metadata, ...rest } = nodeObject({ name: 'n', ...stated });
    return { ...rest, metadata: { ...metadata, uid } };
  };
  const before = node({ podCIDRs, annotations: annotated }, 'first');
  const released = (now?: Stated, uid = 'another'): string[] =>
    releasedBy(before, now && node(now, uid)).map(formatPrefix);
  expect(released()).toEqual([...podCIDRs, 'fd00:1:1:1::/64']);
  expect(released({})).toEqual([...podCIDRs, 'fd00:1:1:1::/64']);
  expect(released({ podCIDRs: ['100.64.9.0/24', 'fd00::/64'] })).toEqual(['100.64.0.0/24', 'fd00:1:1:1::/64']);
  expect(released({ podCIDRs, annotations: annotated })).toEqual([]);
  // Of the same Node a locator is not: it gets it again.
  expect(released({}, 'first')).toEqual(podCIDRs);
});
