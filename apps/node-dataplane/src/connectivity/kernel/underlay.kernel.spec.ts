import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { nodeCommand } from '@unbounded/config/node-command';
import { beforeAll, expect, test } from 'vitest';
import type { Report } from './underlay.scenario.ts';

let report: Report;
beforeAll(() => {
  const argv = ['--net', ...nodeCommand, join(import.meta.dirname, 'underlay.scenario.ts')];
  report = JSON.parse(execFileSync('unshare', argv, { encoding: 'utf8' })) as Report;
});

test('the underlay is the device that carries the InternalIP, also without a default route and among several', () => {
  expect(report.byAddress).toEqual({ device: 'eth1', mtuBytes: 9000 });
});

test('an address on loopback says nothing of the device: the default route does', () => {
  expect(report.onLoopback).toEqual({ device: 'eth0', mtuBytes: 1500 });
  expect(report.byDefaultRoute).toEqual({ device: 'eth0', mtuBytes: 1500 });
});

test('without either what was last known stands, with a problem that names the address and the remedy', () => {
  expect(report.lost.underlay).toEqual({ device: 'eth1', mtuBytes: 9000 });
  expect(report.lost.problems).toEqual([
    {
      reason: 'UnderlayUnknown',
      message: expect.stringMatching(/no device has 10\.1\.0\.30.*MTU of eth1, 9000 bytes.*InternalIP/),
    },
  ]);
  expect(report.unknown.underlay).toBeUndefined();
  expect(report.unknown.problems[0]!.message).toContain('the last plan stands');
});

test('the device that an agent left when it died while it looked for protocols is removed; a foreign one stays', () => {
  expect(report.protocols.withLeftover).toEqual(report.protocols.clean);
  expect(report.protocols.withForeign).toEqual(report.protocols.clean);
  expect(report.links).toEqual({ afterLeftover: false, afterForeign: true });
});
