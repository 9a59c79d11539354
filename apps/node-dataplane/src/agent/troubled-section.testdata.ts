import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { type DataPath, startOn } from './agent-node.testdata.ts';
import { HOOK_MS } from './example-section.testdata.ts';
import type { Report, Seen } from './troubled-section.scenario.ts';

/** After it a gateway is taken for silent. */
const SILENT_MS = 40_000;

const LETS_IN = [0, ''];
const refuses = (message: string) => [1, message];
const CASES: readonly [string, (report: Report) => Seen, string, readonly unknown[]][] = [
  [
    'cannot be opened',
    ({ failsToOpen }) => failsToOpen,
    'section example: no module yet: keeping its current kernel state',
    refuses('section example: it is not open'),
  ],
  ['is open after 20 s', ({ opened }) => opened, '', LETS_IN],
  [
    'throws when it is asked about a pod',
    ({ throwsInConcerns }) => throwsInConcerns,
    'cannot tell whether pod example/web concerns it: no such policy',
    refuses('section example: cannot tell whether pod example/web concerns it: no such policy'),
  ],
  [
    'does not answer for a pod',
    ({ hangsInAdd }) => hangsInAdd,
    '',
    refuses(`section example: no answer within ${HOOK_MS} ms`),
  ],
  [
    'hangs in its report',
    ({ hangsInReport }) => hangsInReport,
    'section example: cannot write what it reports: no answer within 10 s',
    LETS_IN,
  ],
  [
    'is refused its table after a restart',
    ({ refusedAfterRestart }) => refusedAfterRestart,
    'section example: ',
    LETS_IN,
  ],
];

/** What an agent does beside a section that goes wrong in each way there is: half a minute of processor time for each data path. */
export const describeTroubledSection = (dataPath: DataPath) =>
  describe(`beside a section that goes wrong (${dataPath})`, () => {
    let report: Report;
    beforeAll(async () => {
      report = await startOn<Report>(join(import.meta.dirname, 'troubled-section.scenario.ts'), dataPath);
    }, 180_000);

    test.each(CASES)('that %s, connectivity stays, and each pod has its decision', (_, of, problem, own) => {
      const seen = of(report);
      expect(seen.connectivity).toEqual(report.before);
      expect(seen.problem).toContain(problem);
      expect([seen.own, seen.other]).toEqual([own, LETS_IN]);
    });

    test('connectivity is up with its rules and tunnels in all that', () => {
      const { table, routes, tunnelsUp, network } = report.before;
      expect(table).toContain('chain leaks');
      expect(routes.length).toBeGreaterThan(0);
      expect(tunnelsUp).toContain('vxlan0');
      expect(network).toMatch(/^False /);
    });

    test('the gateway says all the time that it is alive', () => {
      expect(report.longestSilenceMs).toBeLessThan(SILENT_MS);
    });

    test('that hangs while the agent stops, no pod is attached any more', () => {
      expect(report.stopping).toEqual(refuses('the unbounded agent (node-dataplane) does not answer on this node'));
    });

    test('whose table is refused after a restart, the former one stays', () => {
      expect(report.tables[1]).toBe(report.tables[0]);
      expect(report.tables[0]).toContain('chain input');
    });
  });
