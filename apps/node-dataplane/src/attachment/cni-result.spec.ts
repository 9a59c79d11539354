import { expect, test } from 'vitest';
import { extendResult, resultOfVersion } from './cni-result.ts';

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

test.each(['0.3.1', '0.4.0'])(
  'in a result of version %s each address has its family, and what has one keeps it',
  (version) => {
    const ips = [{ address: '192.0.2.7/24', interface: 0 }, { address: '2001:db8::7/64' }];
    const [four, six] = resultOfVersion({ ips }, version).ips!;
    expect(four).toEqual({ version: '4', address: '192.0.2.7/24', interface: 0 });
    expect(six).toEqual({ version: '6', address: '2001:db8::7/64' });
    expect(resultOfVersion({ ips: [four!, six!] }, version)).toEqual({ ips: [four, six] });
    expect(resultOfVersion({ interfaces: [{ name: 'net1' }] }, version)).toEqual({ interfaces: [{ name: 'net1' }] });
  },
);

test.each(['1.0.0', '1.1.0'])('in a result of version %s it has none', (version) => {
  expect(resultOfVersion(result, version)).toBe(result);
});
