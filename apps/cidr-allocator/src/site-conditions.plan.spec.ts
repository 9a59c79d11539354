import type { Site } from '@unbounded/crds';
import { nodeFacts } from '@unbounded/membership';
import { expect, test } from 'vitest';

import { planAllocations } from './allocation.plan.ts';
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
const conditions = (subject: Site) => planSiteConditions(subject, planAllocations({ sites: [subject], nodes }));

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
