import { expect, test } from 'vitest';

import { parseAddress, parsePrefix, specialRangeIn, specialRangeOf } from './index.ts';

test.each([
  ['0.0.0.0', 'unspecified'],
  ['0.1.2.3', 'unspecified'],
  ['127.0.0.1', 'loopback'],
  ['169.254.169.254', 'link-local'],
  ['224.0.0.1', 'multicast'],
  ['255.255.255.255', 'reserved'],
  ['::', 'unspecified'],
  ['::1', 'loopback'],
  ['::ffff:10.0.0.1', 'IPv4-mapped'],
  ['fe80::1', 'link-local'],
  ['febf::1', 'link-local'],
  ['ff02::1', 'multicast'],
  ['10.0.0.1', undefined],
  ['100.64.0.1', undefined],
  ['192.0.2.1', undefined],
  ['223.255.255.255', undefined],
  ['fd00::1', undefined],
  ['2001:db8::1', undefined],
])('%s is %s', (text, want) => expect(specialRangeOf(parseAddress(text))).toBe(want));

test.each([
  ['169.0.0.0/8', 'link-local'],
  ['0.0.0.0/0', 'unspecified'],
  ['::/16', 'unspecified'],
  ['10.0.0.0/8', undefined],
  ['fc00::/16', undefined],
])('the block %s holds %s', (text, want) => expect(specialRangeIn(parsePrefix(text))).toBe(want));
