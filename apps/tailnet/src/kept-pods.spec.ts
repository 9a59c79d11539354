import { closeSync, existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { KeptPod } from './device.plan.ts';
import { createKeptPods } from './kept-pods.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'kept-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

const POD: KeptPod = { podUID: 'a', namespace: 'shop', podName: 'web-0', start: 'Immediate', addresses: [] };

test('what is kept of a pod is replaced whole: a machine that stops meanwhile has the one or the other', () => {
  const kept = createKeptPods(folder);
  kept.write(POD);
  const before = openSync(join(folder, 'a', 'metadata.json'), 'r');
  const changed = { ...POD, addresses: ['100.64.0.7'] };
  kept.write(changed);
  expect(JSON.parse(readFileSync(before, 'utf8'))).toEqual(POD);
  closeSync(before);
  expect(kept.read((podUID) => expect.fail(podUID))).toEqual([changed]);
});

test('a folder of an agent that ended before it had written anything there is removed', () => {
  mkdirSync(join(folder, 'a'));
  expect(createKeptPods(folder).read((podUID) => expect.fail(podUID))).toEqual([]);
  expect(existsSync(join(folder, 'a'))).toBe(false);
});
