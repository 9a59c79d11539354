import { execFileSync, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { checkout, nodeJs } from '../../machine/paths.ts';
import type { Report } from './device.scenario.ts';

/** A pod's device in a tailnet, by the real programs: pod-start, tailnet-device, and a control server without internet. */

const assets = join(checkout, 'tools/assets/build');

/** WireGuard tries a handshake again after 5 s (RekeyTimeout). */
const HANDSHAKE_AGAIN_MS = 4500;

let report: Report;
beforeAll(() => {
  execFileSync(assets, ['probe', 'tailnet-device', 'tailnet-control'], { stdio: 'pipe' });
  const scenario = join(import.meta.dirname, 'device.scenario.ts');
  const enter =
    'for folder in /run /var/lib; do mount -t tmpfs tmpfs $folder; done; mkdir -p /run/netns; mount -t sysfs sysfs /sys; exec "$0" "$@"';
  const printed = execFileSync(
    'unshare',
    ['--net', '--mount', '--propagation', 'private', 'sh', '-c', enter, nodeJs, scenario],
    { encoding: 'utf8' },
  );
  report = JSON.parse(printed.trimEnd().split('\n').at(-1)!) as Report;
}, 900_000);

test.for(['tailnet-control', 'tailnet-device', 'udp-checksum'])(
  '%s does what its own tests say',
  { timeout: 300_000 },
  (program) => {
    const { stdout, status } = spawnSync(assets, ['--test', program], { encoding: 'utf8' });
    expect({ status, stdout }).toEqual({ status: 0, stdout: expect.stringMatching(/^ok\s/m) });
  },
);

test('pods of one node are devices of their own, and reach each other by ICMP, UDP and TCP', () => {
  const [one, two] = report.addresses;
  expect(one!.length).toBe(2);
  expect(new Set([...one!, ...two!]).size).toBe(4);
  expect(report.reached).toMatchObject({ ping: true, echoesLost: 0 });
  expect(report.reached.bytes).toBeGreaterThan(0);
});

test('the process has no capability, listens to nobody, and is in the node’s namespace, of which it changes nothing', () => {
  expect(report.process).toMatchObject({ isInNodeNamespace: true, listensTo: '' });
  expect(report.process.capabilities.map((bits) => BigInt(`0x${bits}`))).toEqual([0n, 0n, 0n, 0n]);
  expect([report.node[1], report.elsewhere]).toEqual([report.node[0], []]);
});

test('a key is used once, removed, and stands in no log', () => {
  expect([report.keysLeft, report.leaked]).toEqual([[false, false], false]);
});

test('what the control server sends changes no address, rule or route of a pod', () => {
  expect(report.pod[1]).toBe(report.pod[0]);
});

test('a device without a key asks the control server for nothing, and logs in when it has one', () => {
  expect(report.withoutKey).toMatchObject({ state: 'NeedsLogin', asked: 0 });
  expect(report.withoutKey.addresses).toHaveLength(2);
});

test('a device whose process is killed keeps interface, index and addresses, and serves again who listened', () => {
  const { link, addresses, served } = report.killed;
  expect(link[1]).toBe(link[0]);
  expect(link[0]).toContain(addresses[0]);
  expect([addresses, served]).toEqual([report.addresses[1], true]);
});

test('a device whose process is killed talks again before WireGuard would notice, whoever sends', () => {
  console.log(report.killed.gapsMs);
  for (const gapMs of Object.values(report.killed.gapsMs)) expect(gapMs).toBeLessThan(HANDSHAKE_AGAIN_MS);
});

test('devices that begin to talk at the same moment do not wait for each other', () => {
  console.log(report.contactsMs);
  for (const ms of report.contactsMs) expect(ms).toBeLessThan(HANDSHAKE_AGAIN_MS);
});

test('while the control server is away a device starts again as it was', () => {
  expect(report.withoutControl).toEqual({ addresses: report.addresses[1], reached: true });
});

test('a device that was deleted logs in again by another key, under its name and with other addresses', () => {
  expect(report.loggedInAgain.addresses).toHaveLength(2);
  const names = report.loggedInAgain.names.filter((name) => !name.startsWith('k8s-shop-pair-'));
  expect(names).toEqual(['k8s-shop-web-0', 'k8s-shop-web-1']);
});
