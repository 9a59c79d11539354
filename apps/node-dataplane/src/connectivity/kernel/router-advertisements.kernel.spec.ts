import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { nodeCommand } from '@unbounded/config/node-command';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Report as Late } from './late-uplinks.scenario.ts';
import type { Report } from './router-advertisements.scenario.ts';

const folder = mkdtempSync(join(tmpdir(), 'ra-'));
let report: Report;
beforeAll(() => {
  const sender = join(folder, 'send-ra');
  execFileSync('gcc', ['-O1', '-Wall', '-Werror', '-o', sender, join(import.meta.dirname, 'send-ra.c')]);
  const argv = [
    '--net',
    '--mount',
    ...nodeCommand,
    join(import.meta.dirname, 'router-advertisements.scenario.ts'),
    sender,
  ];
  report = JSON.parse(execFileSync('unshare', argv, { encoding: 'utf8' })) as Report;
});
afterAll(() => rmSync(folder, { recursive: true }));

test('a default route from a router advertisement outlives that forwarding is turned on', () => {
  expect(report.problems).toEqual([]);
  expect(report.before).toEqual(['eth0 ra']);
  expect(report.forwarding).toEqual({ value: '1', routes: ['eth0 ra'], acceptRa: '2' });
});

test('and later advertisements go on renewing it', () => {
  expect(report.refreshedSeconds).toBeGreaterThan(1800);
});

test('uninstall puts both settings back, and the route stays', () => {
  expect(report.restored).toEqual({ value: '0', routes: ['eth0 ra'], acceptRa: '1' });
});

test('the advertisement of a pod gives the node no route, also where the system’s default is to take them', () => {
  expect(report.afterPod).toEqual({ routes: ['eth0 ra'], acceptRa: ['0', '0'] });
});

test('an uplink that comes when forwarding is on learns too, unless others turned it on', () => {
  const argv = ['--net', ...nodeCommand, join(import.meta.dirname, 'late-uplinks.scenario.ts')];
  const seen = JSON.parse(execFileSync('unshare', argv, { encoding: 'utf8' })) as Late;
  expect(seen).toEqual({ late: '2', setBack: '2', ofOthers: '1', restored: ['1', '1', '0'] });
});
