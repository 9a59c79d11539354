import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runScenario } from './agent-node.testdata.ts';
import type { Report } from './node-section.scenario.ts';

test('while connectivity hangs, what pods may send is repaired at once, and files are written that could not be', () => {
  const report = runScenario(join(import.meta.dirname, 'node-section.scenario.ts'), 'netlink') as Report;
  expect(report).toMatchObject({ unwritable: ['StateNotWritable'], written: true });
  expect(report.repairedMs).toBeLessThan(3000);
}, 120_000);
