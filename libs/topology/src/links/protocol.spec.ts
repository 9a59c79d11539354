import type { TunnelProtocol } from '@unbounded/crds';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type LinkFacts, resolveProtocol } from './protocol.ts';
import type { LinkScope } from '../world/world.ts';

const all = ['WireGuard', 'GENEVE', 'VXLAN', 'IPIP', 'None'] as const;
const scope = (kind: LinkScope['kind'], protocol?: TunnelProtocol): LinkScope => ({
  kind,
  name: 'x',
  protocol,
  mtuBytes: undefined,
  health: undefined,
});
const facts = (link: Partial<LinkFacts>): LinkFacts => ({
  name: 'a - b',
  sameSite: true,
  external: false,
  family: 4,
  inner: new Set([4]),
  scopes: [],
  abilities: [all, all],
  ...link,
});

describe('how a link is carried', () => {
  test.each<{ name: string; link: Partial<LinkFacts> }>([
    { name: 'IPv6 addresses below it', link: { family: 6 } },
    { name: 'IPv6 blocks behind it', link: { inner: new Set([4, 6] as const) } },
  ])('IPIP with $name becomes VXLAN, and that is told', ({ link }) => {
    const { protocol, problems } = resolveProtocol(facts({ scopes: [scope('Site', 'IPIP')], ...link }));
    expect(protocol).toBe('VXLAN');
    expect(problems).toEqual([
      { reason: 'ProtocolUnsupported', message: expect.stringContaining('link a - b cannot use IPIP') },
    ]);
  });

  test.each<{ name: string; link: Partial<LinkFacts>; want: TunnelProtocol }>([
    { name: 'nothing set inside a site: GENEVE', link: {}, want: 'GENEVE' },
    {
      name: 'nothing set, an end without GENEVE: VXLAN',
      link: { abilities: [all, ['VXLAN', 'WireGuard', 'None']] },
      want: 'VXLAN',
    },
    { name: 'nothing set, an end that has not said: VXLAN', link: { abilities: [all, undefined] }, want: 'VXLAN' },
    {
      name: 'nothing set over external addresses: WireGuard',
      link: { external: true, sameSite: false },
      want: 'WireGuard',
    },
    { name: 'a site’s VXLAN counts inside it', link: { scopes: [scope('Site', 'VXLAN')] }, want: 'VXLAN' },
    {
      name: 'a site’s None does not reach beyond it',
      link: { sameSite: false, external: true, scopes: [scope('Site', 'None')] },
      want: 'WireGuard',
    },
    {
      name: 'a site’s WireGuard does',
      link: {
        sameSite: false,
        scopes: [scope('Site', 'WireGuard'), scope('Site', 'None'), scope('SitePeering', 'VXLAN')],
      },
      want: 'WireGuard',
    },
    {
      name: 'the strictest of explicit values',
      link: {
        scopes: [scope('Site', 'None'), scope('GatewayPool', 'IPIP'), scope('SiteGatewayPoolAssignment', 'VXLAN')],
      },
      want: 'VXLAN',
    },
    {
      name: 'GENEVE is stricter than VXLAN',
      link: { scopes: [scope('Site', 'VXLAN'), scope('GatewayPool', 'GENEVE')] },
      want: 'GENEVE',
    },
  ])('$name', ({ link, want }) => {
    expect(resolveProtocol(facts(link)).protocol).toBe(want);
  });

  test('cleartext over external addresses is told', () => {
    const { protocol, problems } = resolveProtocol(
      facts({ sameSite: false, external: true, scopes: [scope('GatewayPoolPeering', 'VXLAN')] }),
    );
    expect(protocol).toBe('VXLAN');
    expect(problems.map(({ reason }) => reason)).toEqual(['CleartextOverExternal']);
  });

  test('an explicit protocol that an end lacks becomes VXLAN, and is told', () => {
    const { protocol, problems } = resolveProtocol(
      facts({ scopes: [scope('Site', 'IPIP')], abilities: [all, ['VXLAN']] }),
    );
    expect(protocol).toBe('VXLAN');
    expect(problems[0]?.message).toContain('cannot use IPIP');
  });

  test('any WireGuard wins, and neither order of scopes nor of ends matters', () => {
    const anyScope = fc.record({
      kind: fc.constantFrom<LinkScope['kind']>(
        'Site',
        'SitePeering',
        'SiteGatewayPoolAssignment',
        'GatewayPool',
        'GatewayPoolPeering',
      ),
      name: fc.constantFrom('a', 'b'),
      protocol: fc.constantFrom<TunnelProtocol | undefined>(undefined, ...all),
      mtuBytes: fc.constant(undefined),
      health: fc.constant(undefined),
    });
    const abilities = fc.option(fc.subarray([...all]), { nil: undefined });
    fc.assert(
      fc.property(
        fc.array(anyScope),
        fc.boolean(),
        fc.boolean(),
        abilities,
        abilities,
        (scopes, sameSite, external, a, b) => {
          const link = facts({ scopes, sameSite, external, abilities: [a, b] });
          const { protocol } = resolveProtocol(link);
          if (scopes.some((s) => s.protocol === 'WireGuard')) expect(protocol).toBe('WireGuard');
          expect(resolveProtocol({ ...link, scopes: scopes.toReversed(), abilities: [b, a] }).protocol).toBe(protocol);
        },
      ),
    );
  });
});
