import { formatPrefix } from '@unbounded/ip';
import { findMember, type NodePlan, parseWorld, planNode, type TopologyObjects } from '@unbounded/topology';
import { withLocators } from '@unbounded/topology/locators';
import { expect, describe, test } from 'vitest';
import type { DataPathKind, KernelPlan } from '../../data-path/kernel-plan.ts';
import { renderPlan } from '../../data-path/render.ts';
import { parseKeptPlan } from '../kept-plan.ts';
import { objectsFor } from '../../testdata.ts';
import { planDevices } from './devices.plan.ts';
import { planFirewall } from './firewall.plan.ts';
import { overlayOnly } from './leaks.plan.ts';

/** What an agent makes of locators where pods have IPv4 alone. Site N has fd4c:0:0:N000::/52. */

const planOf = (objects: TopologyObjects): NodePlan => {
  const world = parseWorld(objects);
  return planNode(world, { member: findMember(world, 'w1')!, underlayMtuBytes: 1500 });
};
const plan = planOf(withLocators(objectsFor('VXLAN')));
const render = (kind: DataPathKind): KernelPlan => renderPlan(kind, plan);
const OWN = 'fd4c:0:0:1002::/64';
const isIpv6 = ({ prefix }: { readonly prefix: string }): boolean => prefix.includes(':');

describe('routes', () => {
  test('of eBPF lead into the anchor, and none to the own locator', () => {
    const routes = render('ebpf').routes.filter(isIpv6);
    expect(routes.map(({ prefix, via }) => [prefix, via])).toEqual([
      ['fd4c:0:0:1000::/52', 'anchor'],
      ['fd4c:0:0:2000::/52', 'anchor'],
    ]);
    expect(
      render('ebpf')
        .endpoints.filter(isIpv6)
        .map(({ prefix }) => prefix),
    ).toEqual(['fd4c:0:0:1001::/64', 'fd4c:0:0:1003::/64', 'fd4c:0:0:2000::/52']);
  });

  test('of the kernel lead past its own locator to the main table', () => {
    const routes = new Map(render('netlink').routes.map(({ prefix, via }) => [prefix, via]));
    expect(routes.get(OWN)).toBe('main');
    expect(routes.get('fd4c:0:0:1000::/52')).toBe('unreachable');
    expect(routes.get('fd4c:0:0:2000::/52')).toEqual({ group: 'locators of site s2 IPv6' });
    expect(routes.get('fd4c:0:0:1003::/64')).toMatchObject({ device: 'vxlan0', gatewayIp: 'fe80::a:1ff:fe00:1fff' });
  });
});

test.each(['ebpf', 'netlink'] as const)(
  'with %s no packet for a locator leaves outside of the overlay, its own included',
  (kind) => {
    expect(
      overlayOnly(render(kind))
        .map(formatPrefix)
        .filter((text) => text.includes(':')),
    ).toEqual(['fd4c:0:0:1000::/52', 'fd4c:0:0:2000::/52']);
  },
);

test('devices carry IPv6 without an address of it, the bridge of pods does not', () => {
  const devices = new Map(planDevices(render('ebpf')).map(({ name, ipv6 }) => [name, ipv6]));
  expect([devices.get('unbounded0'), devices.get('vxlan0'), devices.get('cbr0')]).toEqual([true, true, undefined]);
});

test('pods, masquerading and the CNI configuration know nothing of them', () => {
  const { podCidrs, overlayAddresses, masquerade, ownAddresses, boundary } = planOf(objectsFor('VXLAN'));
  expect(plan).toMatchObject({ podCidrs, overlayAddresses, masquerade, ownAddresses, boundary });
});

test('without locators the table has nothing about them', () => {
  const names = (given: KernelPlan): string[] => (planFirewall(given).sets ?? []).map(({ name }) => name);
  const { locators: _, ...rest } = render('ebpf');
  expect(names(rest)).not.toContain('locators_ip6');
  expect(names(render('ebpf'))).toContain('locators_ip6');
});

test('a kept plan keeps them', () => {
  const text = JSON.stringify({ version: 1, plan });
  expect(
    parseKeptPlan(JSON.parse(text) as { version: 1; plan: unknown }, (reason) => expect.unreachable(reason)),
  ).toEqual(plan);
});
