import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { agentsOnDelete } from './agents-on-delete.ts';

const folder = mkdtempSync(join(tmpdir(), 'on-delete-'));
afterAll(() => rmSync(folder, { recursive: true }));

const rendered = (input: string): string => execFileSync(agentsOnDelete(folder), { encoding: 'utf8', input });

test.each([
  [
    'in one line',
    '  updateStrategy: { type: RollingUpdate, rollingUpdate: { maxUnavailable: 1 } }\n',
    '  updateStrategy: { type: OnDelete, rollingUpdate: { maxUnavailable: 1 } }\n',
  ],
  [
    'in lines of their own',
    '  updateStrategy:\n    type: RollingUpdate\n    rollingUpdate: { maxUnavailable: 1 }\n',
    '  updateStrategy:\n    type: OnDelete\n    rollingUpdate: { maxUnavailable: 1 }\n',
  ],
])('agents whose update is written %s wait', (_, input, output) => expect(rendered(input)).toBe(output));

test('Deployments are updated as they are', () => {
  const input = '  strategy:\n    type: RollingUpdate\n    rollingUpdate: { maxSurge: 1 }\n';
  expect(rendered(input)).toBe(input);
});
