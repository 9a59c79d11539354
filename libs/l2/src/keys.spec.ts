import { formatAddress, macBytes, parsePrefix } from '@unbounded/ip';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fdbEntryName, isStationMac, localMac, neighborName } from './index.ts';

describe('a MAC address', () => {
  const octets = fc.uint8Array({ minLength: 6, maxLength: 6 });

  it('that is chosen is one of a station, and administered locally', () => {
    fc.assert(
      fc.property(octets, (some) => {
        const mac = localMac(some);
        expect(isStationMac(mac)).toBe(true);
        expect(macBytes(mac)[0]! & 0x02).toBe(0x02);
      }),
    );
  });

  it.each(['', '02:00:00:00:00', '02:00:00:00:00:0g', '02-00-00-00-00-01', '02:00:00:00:00:01 ', '02:00:00:00:00:0A'])(
    '"%s" is of no station',
    (text) => expect(isStationMac(text)).toBe(false),
  );

  it.each(['01:00:5e:00:00:01', 'ff:ff:ff:ff:ff:ff', '00:00:00:00:00:00'])('%s is of no station', (text) =>
    expect(isStationMac(text)).toBe(false),
  );
});

describe('a name of an entry', () => {
  const subdomain = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

  it('is one that Kubernetes takes, another for each key', () => {
    const address = fc.oneof(
      fc.ipV4(),
      fc.ipV6().map((text) => formatAddressOf(text)),
    );
    fc.assert(
      fc.property(address, address, (one, other) => {
        expect(neighborName('lan', one)).toMatch(subdomain);
        expect(neighborName('lan', one) === neighborName('lan', other)).toBe(one === other);
      }),
    );
    expect(fdbEntryName('lan', '02:00:5e:10:00:01')).toBe('lan.02-00-5e-10-00-01');
  });

  const formatAddressOf = (text: string): string => {
    const block = parsePrefix(`${text}/128`);
    return formatAddress({ family: 6, value: block.address });
  };
});
