import { expect, test } from 'vitest';
import { layoutOf } from '../layout/layout.ts';
import { linkLines, type PlanLinks } from './links.ts';

const plan = (node: string, parts: Partial<PlanLinks>): PlanLinks => ({
  node,
  mtuBytes: 1420,
  wireGuard: [],
  endpoints: [],
  groups: [],
  routes: [],
  problems: [],
  ...parts,
});
const to = (node: string, protocol: string) => ({ via: { nextHop: { node, protocol } } });
const lines = (protocol: 'Auto' | 'VXLAN' | 'IPIP', plans: PlanLinks[], able: string[] = ['VXLAN', 'WireGuard']) =>
  linkLines(layoutOf({ protocol }), plans, new Set(able));

test('links are told by kind, with the sites that they join', () => {
  const plans = [
    plan('s1-w1', { endpoints: [to('s1-w2', 'VXLAN')], groups: [{ members: [{ node: 's1-g1', protocol: 'VXLAN' }] }] }),
    plan('s2-w1', { endpoints: [to('s2-w2', 'VXLAN')] }),
    plan('s2-g1', { wireGuard: [{ peers: [{ node: 's1-g1' }] }], groups: [{ members: [] }] }),
  ];
  expect(lines('VXLAN', plans)).toEqual(['s1 - s2: WireGuard', 's1, s2: VXLAN']);
});

test('VXLAN where something else is wished says that the kernel lacks it', () => {
  const plans = [plan('s1-w1', { endpoints: [to('s1-w2', 'VXLAN')] })];
  expect(lines('Auto', plans)).toEqual(['s1: VXLAN (this kernel has no GENEVE)']);
  expect(lines('IPIP', plans)).toEqual(['s1: VXLAN (this kernel has no IPIP)']);
  expect(lines('Auto', plans, ['GENEVE', 'VXLAN'])).toEqual(['s1: VXLAN']);
});

test('plain routes and tunnels that routes lead into are links too', () => {
  const plans = [
    plan('s1-w1', { routes: [{ via: { gateways: ['10.1.0.21'] } }, { via: 'anchor' }] }),
    plan('s2-w1', { routes: [{ via: { device: 'vxlan0', remoteIp: '10.2.0.32' } }, { via: { device: 'cbr0' } }] }),
  ];
  expect(lines('VXLAN', plans)).toEqual(['s1: None, plain routing', 's2: VXLAN']);
});
