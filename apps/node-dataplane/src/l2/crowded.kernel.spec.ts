import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runScenario } from '../agent/agent-node.testdata.ts';
import type { Report } from './crowded.scenario.ts';

test('a Network with too many ports, and others who fill the maps, keep no pod of another Network from starting', () => {
  execFileSync(join(import.meta.dirname, '../../../../bpf/build.sh'), { stdio: 'inherit' });
  const report = runScenario(join(import.meta.dirname, 'crowded.scenario.ts')) as Report;
  const limits = ['NetworkTooLarge', 'MapFull'];
  expect(report).toEqual({ before: limits, after: limits, isInForce: true });
});
