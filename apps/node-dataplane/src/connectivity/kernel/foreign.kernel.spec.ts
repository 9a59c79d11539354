import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { nodeCommand } from '@unbounded/config/node-command';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Report } from './foreign.scenario.ts';

let report: Report;
beforeAll(() => {
  const argv = ['--net', ...nodeCommand, join(import.meta.dirname, 'foreign.scenario.ts')];
  report = JSON.parse(execFileSync('unshare', argv, { encoding: 'utf8' })) as Report;
});

describe.each(['192.0.2.0/24', '2001:db8::/64'])('a route of somebody else to %s', (dst) => {
  test.each(['254', '254 7', '252', '252 7'])('is kept and reported (table and metric %s)', (place) => {
    const { problems, messages, during, removed, freed } = report.routes[`${dst} ${place}`]!;
    const theirs = [expect.stringMatching(/^\S+ via \S+ dev eth0 .*proto static/)];
    expect({ problems, during, removed }).toMatchObject({
      problems: ['ForeignRoute'],
      during: theirs,
      removed: theirs,
    });
    expect(messages).toEqual([
      expect.stringMatching(/do not enter the overlay\. .* are dropped .*overlay_leak.*Remove/),
    ]);
    expect(during).toHaveLength(1);
    expect(removed).toHaveLength(1);
    expect(freed).toEqual([
      expect.stringMatching(/dev ours .*proto 117.* mtu 1400/),
      expect.stringMatching(/dev ours .*proto 117.* mtu 1300/),
    ]);
  });
});

test('a rule of somebody else like ours is kept beside ours, and when ours goes', () => {
  const theirs = '32765:\tfrom all lookup 252';
  expect(report.rules).toEqual({ problems: [], during: [theirs, `${theirs} proto 117`], after: [theirs] });
});

test('a permanent neighbor of somebody else is kept and reported; what the kernel learned is replaced, and what is ours changed', () => {
  const { problems, foreign, learned, own } = report.neighbours;
  expect(problems).toEqual(['ForeignNeighbor']);
  expect(foreign).toMatch(/02:00:00:00:00:01 PERMANENT/);
  expect(learned).toMatch(/02:0a:02:00:09:ff PERMANENT.* proto 117/);
  expect(own).toMatch(/02:0a:02:00:0a:ff PERMANENT.* proto 117/);
});
