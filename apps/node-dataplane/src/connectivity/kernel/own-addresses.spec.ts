import { describe, expect, test } from 'vitest';
import { planFor } from '../../testdata.ts';
import { sourceTowards, withLocalAddresses } from './own-addresses.ts';

const address = (text: string) => ({ link: 2, address: text }) as Parameters<typeof withLocalAddresses>[1][number];
const plan = { ...planFor('w1'), ownAddresses: ['10.1.0.30', 'fd00:1::30'] };

describe('the node’s own addresses', () => {
  test('are those of the plan that the node has', () => {
    const found = withLocalAddresses(plan, ['192.0.2.99/24', '10.1.0.30/32', 'fd00:1::30/128'].map(address));
    expect(found).toEqual({ plan, problems: [] });
  });

  test('one that is none of the node’s is a problem that names it, and packets are not sent from it', () => {
    const { plan: local, problems } = withLocalAddresses(plan, [address('fd00:1::30/64')]);
    expect(local.ownAddresses).toEqual(['fd00:1::30']);
    expect(problems).toEqual([
      {
        reason: 'InternalIPNotLocal',
        message: expect.stringContaining('InternalIP 10.1.0.30 is no address of this node'),
      },
    ]);
  });

  test('one that is none of the node’s is not the source of routes either: the overlay address stands in', () => {
    const routes = [{ prefix: '100.66.0.0/16', via: 'anchor' as const, prefSrc: '10.1.0.30', mtuBytes: 1400 }];
    const overlay = { ...plan, overlayAddresses: ['100.65.30.1/32'], routes };
    expect(withLocalAddresses(overlay, [address('10.1.0.30/24'), address('fd00:1::30/64')]).plan.routes).toEqual(
      routes,
    );
    expect(withLocalAddresses(overlay, []).plan.routes).toEqual([{ ...routes[0], prefSrc: '100.65.30.1' }]);
  });

  test('matter to unencrypted tunnels only', () => {
    expect(withLocalAddresses({ ...plan, tunnels: [] }, []).problems).toEqual([]);
  });
});

test('a far end is sent to from the address of its family, one behind a NAT from whichever the kernel chooses', () => {
  const own = { ownAddresses: ['10.1.0.30', 'fd00:1::30'], externalTunnelPeers: ['203.0.113.1'] };
  expect(sourceTowards(own, '10.1.0.31')).toBe('10.1.0.30');
  expect(sourceTowards(own, 'fd00:1::31')).toBe('fd00:1::30');
  expect(sourceTowards(own, '203.0.113.1')).toBeUndefined();
  expect(sourceTowards({ ownAddresses: [], externalTunnelPeers: [] }, '10.1.0.31')).toBeUndefined();
});
