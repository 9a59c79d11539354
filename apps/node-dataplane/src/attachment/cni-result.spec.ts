import { expect, test } from 'vitest';
import { extendResult } from './cni-result.ts';

const result = {
  interfaces: [{ name: 'cbr0' }, { name: 'eth0', sandbox: '/run/netns/p' }],
  ips: [{ address: '100.65.30.9/24', interface: 1 }],
};

test('without additions the result is passed on as it is', () => {
  expect(extendResult(result, [])).toBe(result);
  expect(extendResult(result, [{}])).toEqual(result);
});

test('interfaces of several hooks follow one another, and addresses point at those of their hook', () => {
  const one = {
    interfaces: [{ name: 'ts0', sandbox: '/run/netns/p' }],
    ips: [{ address: '100.100.1.1/32', interface: 0 }],
  };
  const two = { interfaces: [{ name: 'l2' }, { name: 'lan0' }], ips: [{ address: '192.0.2.7/24', interface: 1 }] };
  expect(extendResult(result, [one, two])).toEqual({
    interfaces: [...result.interfaces, ...one.interfaces, ...two.interfaces],
    ips: [...result.ips, { address: '100.100.1.1/32', interface: 2 }, { address: '192.0.2.7/24', interface: 4 }],
  });
});

test('routes are added where there are none', () => {
  expect(extendResult({}, [{ routes: [{ dst: '100.64.0.0/10' }] }])).toEqual({ routes: [{ dst: '100.64.0.0/10' }] });
});
