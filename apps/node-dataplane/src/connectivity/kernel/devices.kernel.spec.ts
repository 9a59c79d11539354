import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { nodeCommand } from '@unbounded/config/node-command';
import { expect, test } from 'vitest';
import type { Report } from './devices.scenario.ts';

const scenario = (): Report => {
  const argv = ['--net', ...nodeCommand, join(import.meta.dirname, 'devices.scenario.ts')];
  return JSON.parse(execFileSync('unshare', argv, { encoding: 'utf8' })) as Report;
};

test('a device that came up with IPv4 addresses alone takes IPv6 ones later', () => {
  const report = scenario();
  expect(report.problems).toEqual([[], [], []]);
  expect(report.addresses).toEqual(expect.arrayContaining(['100.65.1.1/32', 'fd64:1::1/128']));
});

test('nothing that pods send steers their bridge, whatever somebody set it to', () => {
  const ours = {
    kind: 'bridge',
    stp: false,
    multicastSnooping: false,
    linkLocalLearning: false,
    groupForwardMask: 0xfff8,
  };
  const others = { kind: 'bridge', stp: true, multicastSnooping: true, linkLocalLearning: true, groupForwardMask: 0 };
  expect(scenario().bridge).toEqual([ours, others, ours]);
});

test('a TUN in which WireGuard’s packets wait for their process holds more of them than TUNs do, also one that was made before', () => {
  const { kind, queuePackets } = scenario().wireGuard;
  // A kernel with WireGuard has a queue of its own, and nothing waits in the device.
  expect({ kind, queuePackets }).toEqual(
    kind === 'tun'
      ? { kind, queuePackets: [1000, 1000] }
      : { kind: 'wireguard', queuePackets: [expect.anything(), 500] },
  );
});
