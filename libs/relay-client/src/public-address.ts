import { BlockList, isIP } from 'node:net';

/** Addresses that mean something only nearby: RFC 1918, 6598, 3927, 4193, 4291, loopback, multicast, unspecified. */
const NEARBY = new BlockList();
for (const [net, bits] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.168.0.0', 16],
  ['224.0.0.0', 3],
] as const)
  NEARBY.addSubnet(net, bits, 'ipv4');
for (const [net, bits] of [
  ['::', 127],
  ['fc00::', 7],
  ['fe80::', 10],
  ['ff00::', 8],
] as const)
  NEARBY.addSubnet(net, bits, 'ipv6');

/** Whether the address can be reached from anywhere, as far as its range says. False for what is no address. */
export const isPublicAddress = (address: string): boolean => {
  const family = isIP(address);
  return family !== 0 && !NEARBY.check(address, family === 6 ? 'ipv6' : 'ipv4');
};
