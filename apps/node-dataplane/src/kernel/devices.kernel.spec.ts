import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Report } from './devices.scenario.ts';

test('a device that came up with IPv4 addresses alone takes IPv6 ones later', () => {
  const argv = ['--net', process.execPath, join(import.meta.dirname, 'devices.scenario.ts')];
  const report = JSON.parse(execFileSync('unshare', argv, { encoding: 'utf8' })) as Report;
  expect(report.problems).toEqual([[], []]);
  expect(report.addresses).toEqual(expect.arrayContaining(['100.65.1.1/32', 'fd64:1::1/128']));
});
