import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { runScenario } from '../agent/agent-node.testdata.ts';
import type { NativeReport, Report } from './section.scenario.ts';

/** The section on two nodes, from objects to frames. */

const scenario = join(import.meta.dirname, 'section.scenario.ts');
let report: Report;
beforeAll(() => {
  execFileSync(join(import.meta.dirname, '../../../../bpf/build.sh'), { stdio: 'inherit' });
  report = runScenario(scenario) as Report;
}, 60_000);

const NOTHING = { devices: [], routes: [], tables: [], pins: [] };

test('a node without endpoints has nothing in its kernel, and nothing when the last one is gone', () => {
  expect(report.idle).toEqual(NOTHING);
  expect(report.left).toEqual(NOTHING);
  expect(report.additions).toEqual([['l2in0', 'l2out0'], []]);
});

test('pods on two nodes reach each other by IPv4 and IPv6, and see each other’s MAC addresses', () => {
  expect(report.reached).toEqual([true, true]);
  expect(report.neighbor).toContain('lladdr 02:00:00:00:00:03');
  expect(report.conditions).toEqual([
    'True InForce: the node forwards for 1 pod in 1 Network',
    'True InForce: the node forwards for 2 pods in 1 Network',
  ]);
});

test('a pod’s kernel that asks from its link-local address whether a neighbor is still there has an answer', () => {
  expect(report.confirmed).toBe('REACHABLE');
});

test('no ARP travels between the nodes', () => expect(report.arpOnWire).toBe(0));

test('a pod reaches neither another segment nor anybody with a MAC address that is not its own, and both are counted', () => {
  expect(report.apart).toEqual([false, false]);
  const lines = report.frames.filter((line) => line.includes('endpoint="shop/e1"'));
  for (const result of ['encapsulated', 'answered_arp', 'drop_segment', 'drop_forged_mac'])
    expect(lines.filter((line) => line.includes(`network="lan"`) && line.includes(`result="${result}"`))).toHaveLength(
      1,
    );
});

test('a successor of the agent takes over without the loss of a packet, with programs of its own', () => {
  expect(report.restarted.sent).toBeGreaterThanOrEqual(400);
  expect(report.restarted.lost).toBe(0);
  const [before, after] = report.programs;
  expect(after).toHaveLength(2);
  expect(after).not.toEqual(before);
});

test('a pass without changes writes nothing', () => expect(report.atRest).toBe(''));

test('devices and tables that somebody took away are made again', () => {
  expect(report.repaired).toEqual({ reached: true, problems: [] });
});

test('a stranger on a LAN reaches no locator, of the node or behind it', () => {
  expect(report.dropped).toMatchObject({ l2_from_outside: 2 });
});

test('what comes out of a port without a program, or out of the ports and is for no node, is dropped', () => {
  expect(report.dropped).toMatchObject({ l2_leak: 1, l2_port: 1 });
});

test('without a tunnel between nodes pods reach each other, and whoever is neither one of these nor beside them reaches no locator', () => {
  const native = runScenario(scenario, 'native') as NativeReport;
  expect(native.reached).toEqual([true, true]);
  expect(native.dropped).toMatchObject({ l2_from_outside: 6, l2_leak: 0, l2_port: 0 });
});

test('errors of the node about frames for which it has no way are dropped, and count as nobody’s attempt', () => {
  expect(report.dropped['l2_error']).toBeGreaterThan(0);
});

test('what a node sends to a locator and is no frame is dropped and counted', () => {
  expect(report.received).toEqual(['unbounded_l2_received_frames_dropped_total{reason="malformed"} 2']);
});

test('a node without a locator says so, and what would help', () => {
  expect(report.withoutLocator).toMatch(
    /^False NoLocator: Node n1 has no locator.*set spec.l2.locatorPrefix of Mesh default/,
  );
});
