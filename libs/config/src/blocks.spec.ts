import { formatPrefix } from '@unbounded/ip';
import { expect, test } from 'vitest';

import { blocks, option, readConfig } from './index.ts';

const options = { serviceCidrs: option(blocks, 'Service CIDRs.') };
const read = (...argv: string[]) => readConfig(options, { argv, env: {} }).serviceCidrs.map(formatPrefix);

test('blocks are read, of both families', () => {
  expect(read()).toEqual([]);
  expect(read('--service-cidrs', '10.96.0.0/12, fd00:10:96::/112')).toEqual(['10.96.0.0/12', 'fd00:10:96::/112']);
});

test.each([
  ['10.96.0.0/12,x', '"x" is no block'],
  ['10.96.0.1/12', '"10.96.0.1/12" is no block'],
  ['10.96.0.0', '"10.96.0.0" is no block'],
  ['', '"" is no block'],
  ['10.96.0.0/33,10.96.0.0/12,', '"10.96.0.0/33", "" are no blocks'],
])('%j ends the program at its start: the flag, the value and what is valid are named', (value, reason) => {
  expect(() => read('--service-cidrs', value)).toThrow(
    `--service-cidrs is "${value}": ${reason}: must be blocks like 10.96.0.0/12 or fd00:10:96::/112, comma-separated, without bits after their length`,
  );
});
