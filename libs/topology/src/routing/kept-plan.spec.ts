import { expect, test } from 'vitest';
import { withoutProtected } from './kept-plan.ts';
import type { NodePlan } from '../plan.ts';

const plan = {
  underlayIp: '10.1.0.30',
  podCidrs: ['fd64:65:30::/64', '100.65.30.0/24'],
  overlayAddresses: ['100.65.30.1/32', 'fd64:65:30::1/128'],
  masquerade: { sources: [], exceptTo: [] },
  ...{ wireGuard: [], tunnels: [], groups: [], blocks: [], contained: [], problems: [] },
} as unknown as NodePlan;

test.each([
  ['100.65.30.9', ['fd64:65:30::/64'], ['fd64:65:30::1/128']],
  ['fd64:65:30::9', ['100.65.30.0/24'], ['100.65.30.1/32']],
])(
  'with %s protected the other block keeps its own address, whichever family comes first',
  (address, podCidrs, own) => {
    expect(withoutProtected(plan, [{ address, role: 'an address of the API server' }])).toMatchObject({
      podCidrs,
      overlayAddresses: own,
    });
  },
);
