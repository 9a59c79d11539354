import { formatPrefix } from '@unbounded/ip';
import type { KernelPlan, RoutePlan, RouteVia } from '../../data-path/kernel-plan.ts';
import { describe, expect, test } from 'vitest';
import { planFor } from '../../testdata.ts';
import { overlayOnly } from './leaks.plan.ts';

const route = (prefix: string, via: RouteVia): RoutePlan => ({ prefix, via, mtuBytes: 1400 });
const NATIVE: RouteVia = { gateways: ['10.1.0.1'] };

/** Pods are 100.64.0.0/15, nodes 10.0.0.0/8. */
const planWith = (routes: readonly RoutePlan[], rest: Partial<KernelPlan> = {}): KernelPlan => ({
  ...planFor('w1'),
  podCidrs: ['100.65.30.0/24'],
  routes,
  masquerade: { sources: ['100.64.0.0/15'], exceptTo: [] },
  tunnelEnds: { addresses: ['10.0.0.0/8'], wireGuardPorts: [] },
  ...rest,
});
const found = (plan: KernelPlan): string[] => overlayOnly(plan).map(formatPrefix);

describe('addresses that packets leave for by the overlay only', () => {
  test.each<[string, RoutePlan[], string[]]>([
    ['what is routed to the anchor', [route('100.64.0.0/16', 'anchor')], ['100.64.0.0/16']],
    ['what has no route at all yet', [route('100.64.0.0/16', 'unreachable')], ['100.64.0.0/16']],
    ['what leads to a group', [route('100.64.0.0/16', { group: 'site s2 IPv4' })], ['100.64.0.0/16']],
    ['what leads to a device', [route('100.64.0.0/16', { device: 'vxlan0' })], ['100.64.0.0/16']],
    [
      'not what is native in it',
      [route('100.64.0.0/16', 'anchor'), route('100.64.128.0/17', NATIVE)],
      ['100.64.0.0/17'],
    ],
    [
      'but what is in the overlay within that again',
      [route('100.64.0.0/16', NATIVE), route('100.64.1.0/24', 'anchor'), route('100.64.1.7/32', NATIVE)],
      // 100.64.1.0/24 without 100.64.1.7
      [
        '100.64.1.0/30',
        '100.64.1.4/31',
        '100.64.1.6/32',
        '100.64.1.8/29',
        '100.64.1.16/28',
        '100.64.1.32/27',
        '100.64.1.64/26',
        '100.64.1.128/25',
      ],
    ],
    [
      'not what the main table has',
      [route('10.0.0.0/8', 'unreachable'), route('10.128.0.0/9', 'main')],
      ['10.0.0.0/9'],
    ],
    ['nodes behind a gateway', [route('10.2.0.0/24', 'anchor')], ['10.2.0.0/24']],
    ['nothing that is neither of pods nor of nodes', [route('192.0.2.0/24', 'anchor')], []],
    ['the pods in a wider block that a pool routes', [route('100.0.0.0/8', 'anchor')], ['100.64.0.0/15']],
  ])('%s', (_, routes, expected) => {
    expect(found(planWith(routes))).toEqual(expected);
  });

  test('what has no route since it holds an address of the underlay, but not that address', () => {
    const withheld = ['100.64.0.0/32', '100.64.0.2/31', '100.64.0.4/30'];
    expect(found(planWith([route('100.65.0.0/16', 'anchor')], { withheld }))).toEqual([...withheld, '100.65.0.0/16']);
    expect(found(planWith([route('100.64.0.0/16', NATIVE)], { withheld }))).toEqual(withheld);
    expect(found(planWith([route('100.64.0.4/30', NATIVE)], { withheld: ['100.64.0.0/29'] }))).toEqual([
      '100.64.0.0/30',
    ]);
  });

  test('what changes from native routing may leave natively until it has changed', () => {
    expect(found(planWith([route('100.64.0.0/16', 'anchor')], { alsoPlain: ['100.64.0.0/17'] }))).toEqual([
      '100.64.128.0/17',
    ]);
  });

  test('the node’s own pods may be behind devices that only another plugin knows', () => {
    const routes = [route('100.65.0.0/16', 'anchor')];
    expect(found(planWith(routes, { manageCni: true }))).toEqual(['100.65.0.0/16']);
    expect(found(planWith(routes, { manageCni: false, podCidrs: ['100.65.0.0/17'] }))).toEqual(['100.65.128.0/17']);
  });
});
