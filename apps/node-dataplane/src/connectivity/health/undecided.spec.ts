import { expect, test } from 'vitest';
import type { KernelGroup } from '../../data-path/kernel-plan.ts';
import type { PeerReport } from './messages.ts';
import { isUndecided } from './undecided.ts';

const group = (...nodes: string[]): KernelGroup => ({
  name: 'edge/4',
  family: 4,
  members: nodes.map((node) => ({ node, tier: 0, device: 'vxlan0', protocol: 'VXLAN', remoteIp: '192.0.2.1' })),
});
const peer = (node: string, changes: Partial<PeerReport> = {}): PeerReport => ({
  node,
  family: 4,
  state: 'New',
  graceOver: false,
  knowsNextKey: false,
  ...changes,
});

test('a group is undecided while none of its members has answered and all may still', () => {
  expect(isUndecided([group('g1', 'g2')], [peer('g1'), peer('g2')])).toBe(true);
});

test('it is decided once a member is proven, or the grace of one is over', () => {
  expect(isUndecided([group('g1', 'g2')], [peer('g1'), peer('g2', { state: 'Healthy' })])).toBe(false);
  expect(isUndecided([group('g1', 'g2')], [peer('g1', { graceOver: true }), peer('g2')])).toBe(false);
});

test('where there is no choice there is nothing to wait for, nor where members are not probed', () => {
  expect(isUndecided([group('g1')], [peer('g1')])).toBe(false);
  expect(isUndecided([group('g1', 'g2')], [])).toBe(false);
  expect(isUndecided([group('g1', 'g2')], [peer('g1', { family: 6 }), peer('g2', { family: 6 })])).toBe(false);
});
