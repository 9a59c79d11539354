import type { Answers } from '@unbounded/netlink';
import { describe, expect, test } from 'vitest';
import { exhausting, highestUsages, portsExhausting, PORTS_OF_ADDRESS, type PortUsage } from './port-usage.plan.ts';

const answers = (more: Partial<Answers> = {}): Answers => ({
  ...{ protocol: 6, address: '192.0.2.1', peer: '198.51.100.7', peerPort: 443 },
  ...more,
});
const usage = (ports: number, more: Partial<Answers> = {}): PortUsage => ({ ...answers(more), ports });

test('of each address the destination with most connections counts; what has no ports does not', () => {
  const counts = new Map([
    [answers(), 5],
    [answers({ peerPort: 80 }), 9],
    [answers({ protocol: 17, peerPort: 80 }), 8],
    [answers({ protocol: 1, peerPort: 0 }), 100],
    [answers({ address: '192.0.2.2' }), 1],
  ]);
  expect(Object.fromEntries(highestUsages(counts))).toEqual({
    '192.0.2.1': usage(9, { peerPort: 80 }),
    '192.0.2.2': usage(1, { address: '192.0.2.2' }),
  });
  expect(highestUsages(new Map()).size).toBe(0);
});

describe('of an address is warned', () => {
  const warned = (ports: number, before: readonly string[] = []): string[] => [
    ...exhausting(new Map([['192.0.2.1', usage(ports)]]), new Set(before), 0.8),
  ];
  const threshold = Math.ceil(PORTS_OF_ADDRESS * 0.8);

  test('from the threshold on', () => {
    expect(warned(threshold - 1)).toEqual([]);
    expect(warned(threshold)).toEqual(['192.0.2.1']);
  });

  test('until clearly fewer ports are in use', () => {
    expect(warned(threshold - 1, ['192.0.2.1'])).toEqual(['192.0.2.1']);
    expect(warned(Math.floor(PORTS_OF_ADDRESS * 0.71), ['192.0.2.1'])).toEqual([]);
    expect([...exhausting(new Map(), new Set(['192.0.2.1']), 0.8)]).toEqual([]);
  });
});

describe('the problem', () => {
  test('names address, destination, count and remedy', () => {
    expect(portsExhausting(usage(52_817))).toEqual({
      reason: 'EgressPortsExhausting',
      message:
        'egress address 192.0.2.1: at least 52000 of its 64512 ports are in use to TCP 198.51.100.7:443: without a free one pods open no more connections there: give the rule one address more (addresses or egressips), or let the pods use connections again',
    });
    const six = usage(23, { address: '2001:db8::1', protocol: 17, peer: '2001:db8::7' });
    expect(portsExhausting(six).message).toContain(
      'at least 23 of its 64512 ports are in use to UDP [2001:db8::7]:443',
    );
    expect(portsExhausting(usage(5, { protocol: 132 })).message).toContain(
      'at least 5 of its 64512 ports are in use to protocol 132',
    );
  });

  test('stays as it is while a few connections come and go', () => {
    expect(portsExhausting(usage(52_817))).toEqual(portsExhausting(usage(52_001)));
  });
});
