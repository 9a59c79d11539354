import {
  type Address,
  addressBits,
  containsAddress,
  containsPrefix,
  formatPrefix,
  parseAddress,
  parsePrefix,
  type Prefix,
  prefixOf,
} from '@unbounded/ip';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { planPodRoutes, type PodRoutes, TAILNET_PREFIXES } from './pod-routes.plan.ts';

type Way = 'device' | 'unreachable' | 'main';

/** As the kernel looks up (ip-rule(8)): the longest prefix, of several with one prefix the least metric. */
const lookUp = ({ rules, routes }: PodRoutes, address: Address, hasDevice: boolean): Way => {
  if (!rules.some(({ to }) => containsAddress(to, address))) return 'main';
  const [best] = routes
    .filter(({ to, kind }) => containsAddress(to, address) && (hasDevice || kind !== 'device'))
    .toSorted((a, b) => b.to.length - a.to.length || a.metric - b.metric);
  return best === undefined || best.kind === 'throw' ? 'main' : best.kind;
};

const planOf = (...cluster: string[]): PodRoutes => planPodRoutes({ cluster: cluster.map(parsePrefix) });
const wayOf = (routes: PodRoutes, address: string, hasDevice = true): Way =>
  lookUp(routes, parseAddress(address), hasDevice);

describe('a cluster beside the tailnet', () => {
  const routes = planOf('10.0.0.0/8', '192.168.0.0/16', 'fd00:1::/48');

  test.each<[string, Way, Way]>([
    ['100.64.0.1', 'device', 'unreachable'],
    ['100.127.255.255', 'device', 'unreachable'],
    ['100.100.100.100', 'device', 'unreachable'],
    ['fd7a:115c:a1e0::1', 'device', 'unreachable'],
    ['100.128.0.1', 'main', 'main'],
    ['10.1.2.3', 'main', 'main'],
    ['192.0.2.1', 'main', 'main'],
    ['fd00:1::1', 'main', 'main'],
  ])('%s goes by %s, and without the device by %s', (address, way, without) => {
    expect(wayOf(routes, address)).toBe(way);
    expect(wayOf(routes, address, false)).toBe(without);
  });

  test('overlaps with nothing', () => expect(routes.overlaps).toEqual([]));
});

describe('a cluster with addresses of the tailnet', () => {
  const routes = planOf('100.65.0.0/16', '100.65.3.0/24', '100.66.0.10/32', '10.0.0.0/8');

  test.each<[string, Way]>([
    ['100.65.3.7', 'main'],
    ['100.65.200.1', 'main'],
    ['100.66.0.10', 'main'],
    ['100.66.0.11', 'device'],
    ['100.64.0.1', 'device'],
  ])('%s goes by %s', (address, way) => expect(wayOf(routes, address)).toBe(way));

  test('says so of each block, once', () => {
    expect(routes.overlaps.map(({ cluster }) => formatPrefix(cluster))).toEqual(['100.65.0.0/16', '100.66.0.10/32']);
    expect(routes.overlaps[0]!.message).toBe(
      '100.65.0.0/16 is in use in the cluster, and the tailnet gives out addresses of 100.64.0.0/10: pods reach no device there; let the control server give out other addresses',
    );
  });
});

test.each(['100.64.0.0/10', '100.0.0.0/8', '0.0.0.0/0'])('a cluster that has %s keeps all of it', (block) => {
  const routes = planOf(block);
  for (const hasDevice of [true, false]) expect(wayOf(routes, '100.64.0.1', hasDevice)).toBe('main');
  expect(routes.overlaps).toHaveLength(1);
  expect(wayOf(routes, 'fd7a:115c:a1e0::1')).toBe('device');
});

const prefixes = fc
  .tuple(fc.constantFrom(...TAILNET_PREFIXES), fc.bigInt({ min: 0n, max: (1n << 128n) - 1n }), fc.nat(128))
  .map(([near, bits, length]): Prefix => {
    const size = addressBits(near.family);
    const kept = Math.min(length, size);
    // Near the tailnet's prefix: random blocks would hardly ever be in it.
    const value = (near.address ^ (bits & ((1n << BigInt(size - near.length + 2)) - 1n))) & ((1n << BigInt(size)) - 1n);
    return prefixOf({ family: near.family, value }, kept);
  });

test('whatever blocks a cluster has, its addresses never go by the device, and those of the tailnet never by another interface', () => {
  fc.assert(
    fc.property(
      fc.array(prefixes, { maxLength: 12 }),
      fc.array(prefixes, { minLength: 1, maxLength: 12 }),
      (cluster, probed) => {
        const routes = planPodRoutes({ cluster });
        for (const { family, address: value } of [...probed, ...cluster]) {
          const address = { family, value };
          const isCluster = cluster.some((block) => containsAddress(block, address));
          const isTailnet = !isCluster && TAILNET_PREFIXES.some((prefix) => containsAddress(prefix, address));
          expect(lookUp(routes, address, true)).toBe(isTailnet ? 'device' : 'main');
          expect(lookUp(routes, address, false)).toBe(isTailnet ? 'unreachable' : 'main');
        }
        for (const { to, kind } of routes.routes)
          if (kind === 'throw') expect(TAILNET_PREFIXES.some((prefix) => containsPrefix(prefix, to))).toBe(true);
      },
    ),
  );
});
