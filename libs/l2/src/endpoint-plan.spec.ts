import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type EndpointWish, isStationMac, planEndpoint } from './index.ts';
import { network } from './testdata.ts';

const lan = network('lan', { gateways: ['192.0.2.1'], segments: [{ name: 'web' }] });
const seed = Uint8Array.from({ length: 32 }, (_, at) => at);
const wish = (rest: Partial<EndpointWish> = {}): EndpointWish => ({ asked: {}, taken: new Set(), seed, ...rest });

describe('an endpoint', () => {
  test('has a MAC of its own and an address of each family, the same ones for the same seed', () => {
    const planned = planEndpoint(lan, wish());
    expect(isStationMac(planned.mac)).toBe(true);
    expect(planned.addresses.map((text) => text.includes(':'))).toEqual([false, true]);
    expect(planEndpoint(lan, wish())).toEqual(planned);
  });

  test('that comes back has what it had, unless that is another’s now, or of another prefix', () => {
    const held = { mac: '02:00:00:00:00:07', addresses: ['192.0.2.7', '2001:db8::7'] };
    expect(planEndpoint(lan, wish({ held }))).toEqual(held);
    const other = planEndpoint(lan, wish({ held, taken: new Set(['192.0.2.7', '02:00:00:00:00:07']) }));
    expect(other.addresses).not.toContain('192.0.2.7');
    expect(other.mac).not.toBe(held.mac);
    const moved = network('lan', { prefixes: ['198.51.100.0/24'] });
    expect(planEndpoint(moved, wish({ held })).addresses[0]).toMatch(/^198[.]51[.]100[.]/);
  });

  test('has the addresses that it asks for, in canonical form and once', () => {
    const asked = { mac: '02:00:00:00:00:08', addresses: ['192.0.2.8', '2001:DB8:0::8', '2001:db8::8'] };
    expect(planEndpoint(lan, wish({ asked }))).toEqual({
      mac: '02:00:00:00:00:08',
      addresses: ['192.0.2.8', '2001:db8::8'],
    });
  });

  test.each<[asked: EndpointWish['asked'], says: string]>([
    [
      { addresses: ['198.51.100.1'] },
      'Network lan: addresses "198.51.100.1": must be an address inside 192.0.2.0/24, 2001:db8::/64',
    ],
    [{ addresses: ['x'] }, 'addresses "x": must be an address inside'],
    [{ addresses: ['192.0.2.0'] }, 'addresses "192.0.2.0": is the first or the last of its prefix'],
    [{ addresses: ['192.0.2.255'] }, 'addresses "192.0.2.255": is the first or the last'],
    [{ addresses: ['192.0.2.1'] }, 'addresses "192.0.2.1": is an address of spec.gateways'],
    [{ mac: '03:00:00:00:00:01' }, 'mac "03:00:00:00:00:01": must be the MAC address of a station'],
    [{ segment: 'db' }, 'segment "db": must be one of web'],
  ])('that asks for %j is refused with field, value and what would be right', (asked, says) =>
    expect(() => planEndpoint(lan, wish({ asked }))).toThrow(says),
  );

  test('gets no address that is taken, until there is none left', () => {
    const small = network('lan', { prefixes: ['192.0.2.0/29'], gateways: ['192.0.2.1'] });
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 32, maxLength: 32 }), (some) => {
        const taken = new Set<string>();
        for (let count = 0; count < 5; count++) {
          const { addresses } = planEndpoint(small, wish({ taken, seed: some }));
          expect(taken.has(addresses[0]!)).toBe(false);
          taken.add(addresses[0]!);
        }
        expect(() => planEndpoint(small, wish({ taken, seed: some }))).toThrow(
          'no IPv4 address of the network is free',
        );
      }),
    );
  });
});
