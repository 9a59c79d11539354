import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { agentCommand } from '@unbounded/config/node-command';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Report } from './checksum-guard.scenario.ts';
import { HONEST_LATE, REWRITES } from './rewrites.testdata.ts';

const ENTER = `set -e
mount -t tmpfs tmpfs /run
mount -t sysfs sysfs /sys
mount -t bpf bpf /sys/fs/bpf
exec "$0" "$@"`;

let report: Report;
let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'checksums-'));
  const sender = join(folder, 'frame-socket');
  const source = join(import.meta.dirname, '../source-guard/frame-socket.c');
  execFileSync('gcc', ['-O2', '-Wall', '-Werror', '-o', sender, source]);
  const scenario = join(import.meta.dirname, 'checksum-guard.scenario.ts');
  const argv = ['--net', '--mount', '--propagation', 'private', 'sh', '-c', ENTER, ...agentCommand, scenario];
  const printed = execFileSync('unshare', [...argv, sender, '/sys/fs/bpf/unbounded/v1'], { encoding: 'utf8' });
  report = JSON.parse(printed.trimEnd().split('\n').at(-1)!) as Report;
}, 60_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('a checksum that a device is to fill in elsewhere', () => {
  const rows = REWRITES.map(({ what }, index) => [what, index] as const);

  test.each(rows)('without the guard rewrites the frame on its way out: %s', (_, index) => {
    expect(report.unguarded[index]).toBe(true);
  });

  test.each(rows)('is dropped: %s', (_, index) => {
    expect(report.guarded[index]).toBe(false);
  });

  test('is counted, each one', () => {
    expect(report.dropped).toBe(REWRITES.length);
  });
});

test.each(HONEST_LATE.map(({ what }, index) => [what, index] as const))('a checksum of %s passes', (_, index) => {
  expect(report.honest[index]).toBe(true);
});

test('the program stays when its process ends, and a successor takes it over', () => {
  const none = REWRITES.map(() => false);
  expect([report.afterClose, report.successor]).toEqual([none, none]);
});

test('whether frames are checked is a metric', () => {
  expect([report.problems, report.checked]).toEqual([[], [0, 1]]);
});

test('on a kernel that does not let programs see it nothing is attached, and nothing is wrong', () => {
  expect(report.withoutFunction).toEqual({ problems: 0, checked: 0 });
});
