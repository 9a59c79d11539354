import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { agentCommand } from '@unbounded/config/node-command';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { HONEST, HOSTILE } from './attempts.testdata.ts';
import { DROP_REASONS } from './guard-expressions.ts';
import type { Report } from './source-guard.scenario.ts';

/** A network of its own, and folders of its own over those of the machine. */
const ENTER = `set -e
for folder in /run /var/lib /etc/cni /opt/cni; do [ ! -d $folder ] || mount -t tmpfs tmpfs $folder; done
mount -t sysfs sysfs /sys
exec "$0" "$@"`;
const PLUGIN = join(import.meta.dirname, '../../../../cni/build/unbounded-cni');

let report: Report;
let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'guard-'));
  const sender = join(folder, 'frame-socket');
  execFileSync('gcc', ['-O2', '-Wall', '-Werror', '-o', sender, join(import.meta.dirname, 'frame-socket.c')]);
  const scenario = join(import.meta.dirname, 'source-guard.scenario.ts');
  const argv = [
    '--net',
    '--mount',
    '--propagation',
    'private',
    'sh',
    '-c',
    ENTER,
    ...agentCommand,
    scenario,
    sender,
    PLUGIN,
  ];
  const printed = execFileSync('unshare', argv, { encoding: 'utf8', maxBuffer: 64 << 20 });
  report = JSON.parse(printed.trimEnd().split('\n').at(-1)!) as Report;
}, 120_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('what a pod sends that is not its own', () => {
  const rows = HOSTILE.map(({ what }, index) => [what, index] as const);

  test.each(rows)('without the guard it gets through: %s', (_, index) => {
    expect(report.unguarded[index]).toBe(true);
  });

  test.each(rows)('it is dropped: %s', (_, index) => {
    expect(report.hostile[index]).toBe(false);
  });

  test('each is counted by its reason, and none more', () => {
    const wanted = DROP_REASONS.map((reason) => [reason, HOSTILE.filter((one) => one.reason === reason).length]);
    expect(report.dropped).toEqual(Object.fromEntries(wanted));
  });

  test('the pod that did it is named, and no other', () => {
    expect(report.notes).toEqual([
      expect.stringMatching(/^pod default\/pod sent frames .* mac \d+, ipv4 \d+, .*protocol \d+$/),
    ]);
  });

  test('pods beside it lose nothing', () => {
    expect(report.lostPings).toEqual([]);
  });

  test('another MAC of the interface ends its traffic, and the right one brings it back', () => {
    expect(report.otherMac).toEqual({ during: false, after: true });
  });
});

test.each(HONEST.map(([what], index) => [what, index] as const))('what is its own passes: %s', (_, index) => {
  expect(report.honest[index]).toBe(true);
});

test('a port that is in no bridge leads nowhere, once a pass has seen it', () => {
  expect(report.unbridged).toEqual({ open: [true, true], closed: [false, false] });
});

test('a pod from before is guarded at once, and what is its own passes', () => {
  expect(report.earlier).toEqual({ own: true, stolen: false });
});

describe('the table', () => {
  test('is told by CHECK, and repaired by the next pass, when somebody changed it', () => {
    const all = Object.values(report.drifts);
    expect(all).toHaveLength(5);
    for (const { changed, repaired } of all) {
      expect(JSON.parse(changed)).toMatchObject({ code: 100, msg: expect.stringContaining('unbounded_pods lack it') });
      expect(repaired).toBe('');
    }
  });

  test('is written by nobody at rest, nor by a successor', () => {
    expect(report.secondWrote).toEqual([]);
    expect(report.successorWrote).toEqual([]);
  });

  test('is whole again with the next pod when it was flushed', () => {
    expect(report.addAfterFlush).toEqual({ code: 0, ports: 3 });
  });

  test('loses a pod with DEL, also twice', () => {
    expect(report.afterDel).toEqual([2, 2]);
  });

  test('is taken away by the clean-up', () => {
    expect(report.tablesAfterCleanup).toBe('');
  });
});

test('ADD of a pod whose interface is not there asks to try again, and registers nothing', () => {
  expect(report.addWithoutPort).toEqual({ code: 1, error: 11, registered: 3 });
});

test('a port of the bridge that belongs to no pod is a problem once it has been there for 10 s', () => {
  expect(report.strangers).toEqual([[], [], [expect.stringMatching(/no registered pod.*: veth0;/)]]);
});

test('all goes without a problem', () => {
  expect(report.problems).toEqual([]);
});
