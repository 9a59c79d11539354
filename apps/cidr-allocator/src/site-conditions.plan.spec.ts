import type { Site } from '@unbounded/crds';
import { nodeFacts } from '@unbounded/membership';
import { expect, test } from 'vitest';

import { planAllocations } from './allocation.plan.ts';
import { planLocators } from './locators.plan.ts';
import { planSiteConditions } from './site-conditions.plan.ts';

const site = (assignment: Site['spec']['podCidrAssignments'][number], spec: Partial<Site['spec']> = {}): Site => ({
  apiVersion: 'net.unbounded-cloud.io/v1alpha1',
  kind: 'Site',
  metadata: { name: 'a', generation: 7 },
  spec: { nodeCidrs: ['10.1.0.0/16'], podCidrAssignments: [assignment], ...spec },
});
const nodes = Array.from({ length: 8 }, (_, index) =>
  nodeFacts({ metadata: { name: `n${index}` }, status: { addresses: [{ type: 'InternalIP', address: '10.1.0.1' }] } }),
);
const conditions = (subject: Site, prefix?: string) => {
  const world = { sites: [subject], nodes };
  return planSiteConditions(subject, planAllocations(world), planLocators({ ...world, prefix }));
};

test.each<[string, Site, object[]]>([
  [
    'all is well',
    site({ cidrBlocks: ['100.64.0.0/16'] }),
    [
      { status: 'True', reason: 'Available' },
      { status: 'True', reason: 'Valid' },
    ],
  ],
  [
    'a full pool says what to do and names five who wait',
    site({ cidrBlocks: ['100.64.0.0/23'] }),
    [
      {
        type: 'PodCIDRsAvailable',
        status: 'False',
        reason: 'PodCIDRsExhausted',
        message:
          'no free /24 in 100.64.0.0/23: add a block to spec.podCidrAssignments[0].cidrBlocks; waiting: n2, n3, n4, n5, n6 and 1 more',
        observedGeneration: 7,
      },
      { status: 'True' },
    ],
  ],
  [
    'another CNI plugin',
    site({ cidrBlocks: ['100.64.0.0/16'] }, { manageCniPlugin: false }),
    [{ status: 'True', reason: 'NotManaged' }, {}],
  ],
  [
    'nodes that no assignment is for are named',
    site({ cidrBlocks: ['100.64.0.0/16'], nodeRegex: ['n[0-5]'] }),
    [
      {
        status: 'False',
        reason: 'NoMatchingAssignment',
        message: 'no enabled entry of spec.podCidrAssignments has a nodeRegex that matches: n6, n7',
      },
      {},
    ],
  ],
  [
    'an expression that does not compile',
    site({ cidrBlocks: ['100.64.0.0/16'], nodeRegex: ['a', '('] }),
    [
      {},
      {
        type: 'PodCIDRsValid',
        status: 'False',
        reason: 'InvalidRegex',
        message: expect.stringContaining('spec.podCidrAssignments[0].nodeRegex[1] is "("'),
      },
    ],
  ],
])('%s', (_, subject, want) => expect(conditions(subject)).toMatchObject(want));

const roomy = site({ cidrBlocks: ['100.64.0.0/16'] });
const locatorsOf = (subject: Site, prefix?: string) =>
  conditions(subject, prefix).find(({ type }) => type === 'L2LocatorsAllocated');

test('locators have a condition only with stretched L2', () => {
  expect(locatorsOf(roomy)).toBeUndefined();
  expect(locatorsOf(roomy, 'fd53:ab:cd::/48')).toEqual({
    type: 'L2LocatorsAllocated',
    status: 'True',
    reason: 'Allocated',
    message: 'no node waits for a locator of fd53:ab:cd::/52',
    observedGeneration: 7,
  });
});

test('a prefix that pods have addresses of is told with field, value and remedy', () => {
  expect(locatorsOf(site({ cidrBlocks: ['fd53:ab::/32'] }), 'fd53:ab:cd::/48')).toMatchObject({
    status: 'False',
    reason: 'LocatorPrefixOverlaps',
    message:
      'spec.l2.locatorPrefix of Mesh default is fd53:ab:cd::/48 and overlaps cidrBlocks of Site a (fd53:ab::/32): no locator is given; write a prefix in which nothing else has an address, like a unique local one (RFC 4193)',
  });
});

test('of a shortage the condition says what is full, who waits and what helps', () => {
  const blocks = planAllocations({ sites: [roomy], nodes });
  const plan = planLocators({ prefix: 'fd53:ab:cd::/48', sites: [roomy], nodes });
  const of = (block?: string) =>
    planSiteConditions(roomy, blocks, {
      ...plan,
      shortages: [{ site: 'a', ...(block === undefined ? {} : { block }), nodes: ['n1', 'n2'] }],
    }).at(-1);
  expect(of('fd53:ab:cd::/52')).toMatchObject({
    reason: 'L2LocatorsExhausted',
    message:
      'no free /64 in fd53:ab:cd::/52, the block of this Site: make a second Site of a part of its nodeCidrs; waiting: n1, n2',
  });
  expect(of()).toMatchObject({
    reason: 'LocatorPrefixExhausted',
    message:
      'no free /52 in fd53:ab:cd::/48, spec.l2.locatorPrefix of Mesh default: write a shorter prefix that holds this one, and the other Sites keep their blocks; waiting: n1, n2',
  });
});

test('blocks that the API server refuses are told with their nodes; a full pool is told first', () => {
  const conditionOf = (cidrBlocks: string[]) => {
    const subject = site({ cidrBlocks });
    const plan = planAllocations({ sites: [subject], nodes });
    const refused = [...plan.allocations.slice(0, 2), { node: 'x', site: 'b', podCIDRs: [] }];
    return planSiteConditions(subject, plan, planLocators({ sites: [subject], nodes }), refused)[0];
  };
  expect(conditionOf(['100.64.0.0/16'])).toMatchObject({ status: 'False', reason: 'WritesRefused' });
  expect(conditionOf(['100.64.0.0/16'])?.message).toContain('the blocks of n0, n1 were refused');
  expect(conditionOf(['100.64.0.0/23'])).toMatchObject({ reason: 'PodCIDRsExhausted' });
});
