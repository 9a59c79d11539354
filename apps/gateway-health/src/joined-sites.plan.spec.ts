import type { GatewayPoolPeering, Mesh, SitePeering } from '@unbounded/crds';
import { expect, test } from 'vitest';
import { assign, object, pool, reachedPool, SITES } from './gateway-world.testdata.ts';
import { planReach, type ReachObjects } from './reachability.plan.ts';

/** Which Sites a pool joins, by the objects that say so. */

const peerSites = (...sites: string[]): SitePeering => object('SitePeering', 'x', { sites, meshNodes: false });
const peerPools = (gatewayPools: string[], enabled = true): GatewayPoolPeering =>
  object('GatewayPoolPeering', 'x', { gatewayPools, enabled });

const INTERNAL = reachedPool('p', 0, { type: 'Internal' });
const MESH: Mesh = object('Mesh', 'default', {
  relay: { provider: 'external', external: { endpoint: 'relay.example.com:3478' } },
});
const joins = (parts: Partial<ReachObjects>) =>
  Object.fromEntries(
    [
      ...planReach({
        sites: SITES,
        gatewayPools: ['p', 'q', 'r'].map((name, i) => reachedPool(name, i)),
        meshes: [],
        assignments: [],
        sitePeerings: [],
        poolPeerings: [],
        ...parts,
      }),
    ].map(([name, { connectedSites, reachableSites }]) => [
      name,
      `${connectedSites.join('')}/${reachableSites.join('')}`,
    ]),
  );

test.each<[string, Parameters<typeof joins>[0], Record<string, string>]>([
  ['an assignment connects', { assignments: [assign(['a', 'b'], ['p'])] }, { p: 'ab/ab', q: '/' }],
  ['a disabled one does not', { assignments: [assign(['a'], ['p'], false)] }, { p: '/' }],
  [
    'sites peered with a served one are connected, meshed or not; what no pool serves has no route by gateways',
    { assignments: [assign(['a'], ['p'])], sitePeerings: [peerSites('a', 'b'), peerSites('c', 'd')] },
    { p: 'ab/a' },
  ],
  [
    'peering is followed one step only',
    { assignments: [assign(['a'], ['p'])], sitePeerings: [peerSites('a', 'b'), peerSites('b', 'c')] },
    { p: 'ab/a' },
  ],
  [
    'pools are followed as far as they lead',
    {
      assignments: [assign(['a'], ['p']), assign(['b'], ['q']), assign(['c'], ['r'])],
      poolPeerings: [peerPools(['p', 'q']), peerPools(['q', 'r'])],
    },
    { p: 'a/abc', q: 'b/abc', r: 'c/abc' },
  ],
  [
    'a pool without sites passes on',
    {
      assignments: [assign(['a'], ['p']), assign(['c'], ['r'])],
      poolPeerings: [peerPools(['p', 'q']), peerPools(['q', 'r'])],
    },
    { q: '/ac' },
  ],
  [
    'a disabled pool peering does not count',
    { assignments: [assign(['a'], ['p']), assign(['b'], ['q'])], poolPeerings: [peerPools(['p', 'q'], false)] },
    { p: 'a/a', q: 'b/b' },
  ],
  [
    'names that do not exist are left out',
    { assignments: [assign(['a', 'nowhere'], ['p', 'none'])], poolPeerings: [peerPools(['p', 'none'])] },
    { p: 'a/a' },
  ],
  [
    'an Internal pool that is assigned to two sites without a common network serves its own',
    { assignments: [assign(['a', 'b'], ['p'])], gatewayPools: [INTERNAL] },
    { p: 'a/a' },
  ],
  [
    'and both when they share a network',
    { assignments: [assign(['a', 'b'], ['p'])], gatewayPools: [INTERNAL], sitePeerings: [peerSites('a', 'b')] },
    { p: 'ab/ab' },
  ],
  [
    'and both with a relay',
    { assignments: [assign(['a', 'b'], ['p'])], gatewayPools: [INTERNAL], meshes: [MESH] },
    { p: 'ab/ab' },
  ],
  [
    'a pool without gateways reaches nothing and passes nothing on',
    {
      assignments: [assign(['a'], ['p']), assign(['b'], ['q']), assign(['c'], ['r'])],
      poolPeerings: [peerPools(['p', 'q']), peerPools(['q', 'r'])],
      gatewayPools: [reachedPool('p', 0), pool('q'), reachedPool('r', 2)],
    },
    { p: 'a/a', q: '/', r: 'c/c' },
  ],
])('%s', (_, parts, want) => expect(joins(parts)).toMatchObject(want));
