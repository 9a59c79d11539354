import type { Route, RouteSpec } from '@unbounded/netlink';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { diffRoutes } from './routes.diff.ts';

/** As the kernel shows a route that was set. */
const observed = (spec: RouteSpec): Route => ({
  ...spec,
  family: spec.dst.includes(':') ? 6 : 4,
  table: spec.table ?? 254,
  protocol: 117,
  scope: 'global',
  type: spec.type ?? 'unicast',
  flags: 0,
  ...(spec.dst.includes(':') && spec.metric === undefined ? { metric: 1024 } : {}),
});

const destinations = fc.constantFrom('100.65.0.0/16', '100.66.0.0/16', '10.2.0.0/24', 'fd00:1::/64', 'fd00:2::/64');
const ways = fc.oneof(
  fc.record({ link: fc.integer({ min: 2, max: 4 }) }),
  fc.record({ gateway: fc.constantFrom('10.1.0.1', '10.1.0.2') }),
  fc.record({
    nexthops: fc
      .uniqueArray(fc.constantFrom('10.1.0.1', '10.1.0.2', '10.1.0.3'), { minLength: 2 })
      .map((all) => all.map((gateway) => ({ gateway }))),
  }),
);
const routes = fc.uniqueArray(
  fc
    .tuple(destinations, ways, fc.constantFrom(1400, 1420), fc.constantFrom(undefined, '100.65.1.1'))
    .map(([dst, way, mtu, prefSrc]): RouteSpec => ({ dst, ...way, mtu, ...(prefSrc ? { prefSrc } : {}) })),
  { selector: ({ dst }) => dst },
);

describe('the difference between routes', () => {
  test('applied to what is there, it gives what is wanted; applied again, it is nothing', () => {
    fc.assert(
      fc.property(routes, routes, (before, wanted) => {
        const diff = diffRoutes(before.map(observed), wanted);
        const table = new Map(before.map((route) => [route.dst, route]));
        for (const { dst } of diff.remove) expect(table.delete(dst)).toBe(true);
        for (const route of diff.replace) table.set(route.dst, route);
        const after = [...table.values()].map(observed);
        expect(diffRoutes(after, wanted)).toEqual({ replace: [], remove: [] });
        expect([...table.keys()].sort()).toEqual(wanted.map(({ dst }) => dst).sort());
      }),
    );
  });

  test('nothing that is to stay is removed, and nothing that is right is written', () => {
    fc.assert(
      fc.property(routes, (wanted) => {
        expect(diffRoutes(wanted.map(observed), wanted)).toEqual({ replace: [], remove: [] });
      }),
    );
  });

  test('the device that the kernel chose for a gateway is no difference', () => {
    const wanted: RouteSpec = { dst: '100.66.0.0/16', gateway: '10.1.0.1', mtu: 1400 };
    expect(diffRoutes([{ ...observed(wanted), link: 7 }], [wanted]).replace).toEqual([]);
  });

  test('next hops in another order, with the devices that the kernel chose, are the same next hops', () => {
    const wanted: RouteSpec = {
      dst: '100.66.0.0/16',
      mtu: 1400,
      nexthops: [{ gateway: '10.1.0.1' }, { gateway: '10.1.0.2' }],
    };
    const seen = [
      { gateway: '10.1.0.2', link: 3, weight: 1 },
      { gateway: '10.1.0.1', link: 3, weight: 1 },
    ];
    expect(diffRoutes([{ ...observed(wanted), nexthops: seen }], [wanted]).replace).toEqual([]);
  });

  test.each([[undefined], ['10.1.0.99']])(
    'a tunnel route whose packets have the outer source %s instead of the wanted one is replaced',
    (src) => {
      const toPeer = (own: string | undefined): RouteSpec => ({
        dst: '100.66.0.0/16',
        link: 4,
        gateway: '100.66.0.1',
        encap: { type: 'ip', id: 1, dst: '10.1.0.31', ...(own === undefined ? {} : { src: own }) },
      });
      const wanted = toPeer('10.1.0.30');
      expect(diffRoutes([observed(toPeer(src))], [wanted]).replace).toEqual([wanted]);
      expect(diffRoutes([observed(wanted)], [toPeer(src)]).replace).toEqual([toPeer(src)]);
      expect(diffRoutes([observed(wanted)], [wanted]).replace).toEqual([]);
    },
  );
});
