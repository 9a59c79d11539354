import { overlaps, parsePrefix } from '@unbounded/ip';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { apiServerUrl, layoutOf } from './layout.ts';
import { PROTOCOLS, TOPOLOGIES } from './options.ts';

const options = fc.record({
  sites: fc.integer({ min: 1, max: 8 }),
  gateways: fc.integer({ min: 1, max: 4 }),
  workers: fc.integer({ min: 0, max: 8 }),
  protocol: fc.constantFrom(...PROTOCOLS),
  topology: fc.constantFrom(...TOPOLOGIES),
  ip: fc.constantFrom('ipv4' as const, 'dual' as const, 'ipv6' as const),
});

test('no name or address is given twice, and no blocks of two sites overlap', () => {
  fc.assert(
    fc.property(options, (given) => {
      const { nodes, sites } = layoutOf({ ...given, blockUdp: given.topology === 'nat' ? 'none' : 'off' });
      const external = nodes.flatMap((node) => node.external?.ips ?? []);
      const addresses = [
        ...nodes.flatMap(({ internalIps }) => internalIps),
        ...external,
        ...sites.flatMap(({ routerWanIps }) => routerWanIps),
      ];
      expect(new Set(addresses).size).toBe(addresses.length);
      expect(new Set(nodes.map(({ name }) => name)).size).toBe(nodes.length);
      const blocks = sites.flatMap(({ lans, podPools }) => [...lans, ...podPools]).map(parsePrefix);
      for (const [i, a] of blocks.entries()) for (const b of blocks.slice(i + 1)) expect(overlaps(a, b)).toBe(false);
    }),
  );
});

test('without Kubernetes no node is a control plane, and nodes have addresses of the underlay, not of the pods', () => {
  const { nodes, sites } = layoutOf({ fabric: true, ip: 'ipv4', underlay: 'ipv6' });
  expect(nodes.map(({ role }) => role)).not.toContain('control-plane');
  expect(nodes.flatMap(({ internalIps, external }) => [...internalIps, ...(external?.ips ?? [])]).join()).not.toContain(
    '.',
  );
  expect(sites.map(({ lans, podPools }) => [lans, podPools])).toEqual([
    [['fd10:1::/64'], ['100.65.0.0/16']],
    [['fd10:2::/64'], ['100.66.0.0/16']],
  ]);
});

test('other sites reach the API server by its external address', () => {
  const layout = layoutOf({ sites: 2, gateways: 1, workers: 1, protocol: 'Auto' });
  expect(apiServerUrl(layout, 's1')).toBe('https://10.1.0.10:6443');
  expect(apiServerUrl(layout, 's2')).toBe('https://203.0.113.99:6443');
});

test.each([
  [{ sites: 0, gateways: 1, workers: 1 }, '--sites 0: must be an integer from 1 to 8'],
  [{ sites: 2, gateways: 0, workers: 1 }, '--gateways 0: sites that are to be joined need at least 1'],
  [{ sites: 2, gateways: 1, workers: 1.5 }, '--workers 1.5: must be an integer from 0 to 8'],
  [{ sites: 2, gateways: Number.NaN, workers: 1 }, '--gateways NaN'],
  [{ delayMs: 20 }, '--delay-ms 20: only --fabric has it'],
  [{ underlay: 'ipv6' as const }, '--underlay ipv6: only --fabric has it'],
  [{ fabric: true, agents: 'pods' as const }, '--agents pods: with --fabric there is no Kubernetes'],
  [{ fabric: true, prometheus: true }, '--prometheus: with --fabric there is no node of a control plane'],
  [{ prometheus: true, agents: 'pods' as const }, '--prometheus: Debian’s Prometheus finds no pods by itself'],
  [{ fabric: true, reorderPercent: 5 }, '--reorder-percent 5: only delayed packets are overtaken; give --delay-ms too'],
  [{ fabric: true, sites: 1, gateways: 0, workers: 0 }, '--gateways 0 --workers 0: with --fabric there is no node'],
])('%o is refused: %s', (given, message) => {
  expect(() => layoutOf({ ...given, protocol: 'Auto' })).toThrow(message);
});
