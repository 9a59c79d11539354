import { expect, test } from 'vitest';
import type { Destination, GroupPlan } from '@unbounded/topology';
import { layoutOf } from '../layout/layout.ts';
import { linkLines, type PlanLinks } from './links.ts';

const plan = (node: string, parts: Partial<PlanLinks>): PlanLinks => ({
  node,
  wireGuard: [],
  groups: [],
  blocks: [],
  ...parts,
});
const block = (to: Destination) => ({ prefix: '192.0.2.0/24', mtuBytes: 1420, to });
const hop = (node: string) => ({ node, protocol: 'VXLAN', remoteIp: '192.0.2.1' }) as const;
const to = (node: string) => block({ nextHop: hop(node) });
const wireGuard = (node: string) => ({
  ...{ name: 'wg51820', listenPort: 51820, mtuBytes: 1420 },
  peers: [{ node, publicKey: '', allowedIps: [] }],
});
const group = (...members: GroupPlan['members']): GroupPlan => ({ name: 'site', family: 4, members });
const lines = (protocol: 'Auto' | 'VXLAN' | 'IPIP', plans: PlanLinks[], able: string[] = ['VXLAN', 'WireGuard']) =>
  linkLines(layoutOf({ protocol }), plans, new Set(able));

test('links are told by kind, with the sites that they join', () => {
  const plans = [
    plan('s1-w1', { blocks: [to('s1-w2')], groups: [group({ ...hop('s1-g1'), tier: 0 })] }),
    plan('s2-w1', { blocks: [to('s2-w2')] }),
    plan('s2-g1', { wireGuard: [wireGuard('s1-g1')], groups: [group()] }),
  ];
  expect(lines('VXLAN', plans)).toEqual(['s1 - s2: WireGuard', 's1, s2: VXLAN']);
});

test('VXLAN where something else is wished says that the kernel lacks it', () => {
  const plans = [plan('s1-w1', { blocks: [to('s1-w2')] })];
  expect(lines('Auto', plans)).toEqual(['s1: VXLAN (this kernel has no GENEVE)']);
  expect(lines('IPIP', plans)).toEqual(['s1: VXLAN (this kernel has no IPIP)']);
  expect(lines('Auto', plans, ['GENEVE', 'VXLAN'])).toEqual(['s1: VXLAN']);
});

test('gateways of plain routes are links too, and destinations of nobody are none', () => {
  const plans = [
    plan('s1-w1', { blocks: [block({ gateways: ['10.1.0.21'] }), block('pending'), block({ group: 'site' })] }),
    plan('s2-w1', { blocks: [to('nobody')] }),
  ];
  expect(lines('VXLAN', plans)).toEqual(['s1: None, plain routing']);
});
