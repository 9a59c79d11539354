import type { ClusterView } from '@unbounded/status';
import { describe, expect, it } from 'vitest';
import { filterProblems, newlyCritical, orderedProblems, problemsOf } from './problems.ts';
import type { Problem } from './types.ts';

const problem = (over: Partial<Problem> = {}): Problem => ({
  ...{ severity: 'warning', reason: 'GatewayDown', kind: 'Node', name: 'g1', message: 'no answer' },
  ...{ consequence: 'g2 stands in', sites: ['s1'], since: '2026-01-01T00:00:00Z' },
  ...over,
});

const viewOf = (problems: Record<string, Problem>, order: string[] = Object.keys(problems)) =>
  ({ problems, order }) as unknown as ClusterView;

describe('problems', () => {
  it('are in the order of the view, and those without an order after them', () => {
    const view = viewOf(
      { a: problem({ severity: 'info' }), b: problem(), c: problem({ severity: 'critical' }), d: problem() },
      ['d', 'gone', 'b', 'd'],
    );
    expect(orderedProblems(view).map(({ id }) => id)).toEqual(['d', 'b', 'c', 'a']);
  });

  it('stay the same objects where nothing changed', () => {
    const view = viewOf({ a: problem() });
    expect(orderedProblems(view)[0]).toBe(orderedProblems({ ...view })[0]);
  });

  it('are found by severity, site and words', () => {
    const all = [
      problem({ severity: 'critical', sites: ['s1', 's2'] }),
      problem({ name: 'edge', kind: 'Site', sites: [] }),
      problem({ name: 'w9', message: 'Handshake is old' }),
    ];
    const names = (filter: object) => filterProblems(all, filter).map(({ name }) => name);
    expect(names({})).toEqual(['g1', 'edge', 'w9']);
    expect(names({ severity: 'critical' })).toEqual(['g1']);
    expect(names({ site: 's2' })).toEqual(['g1']);
    expect(names({ site: 'edge' })).toEqual(['edge']);
    expect(names({ q: 'handshake W9' })).toEqual(['w9']);
    expect(names({ q: 'handshake g1' })).toEqual([]);
  });

  it('of one object are those of its kind and name', () => {
    const view = viewOf({ a: problem(), b: problem({ kind: 'Site' }), c: problem({ name: 'g2' }) });
    expect(problemsOf(view, 'Node', 'g1').map(({ id }) => id)).toEqual(['a']);
  });

  it('are announced when they become critical, and only then', () => {
    const before = viewOf({ a: problem(), b: problem({ severity: 'critical' }) });
    const after = viewOf({ a: problem({ severity: 'critical' }), b: problem({ severity: 'critical' }) });
    expect(newlyCritical(undefined, after)).toBe('');
    expect(newlyCritical(before, { ...before })).toBe('');
    expect(newlyCritical(before, after)).toBe('New critical problem. Node g1: no answer.');
    expect(newlyCritical(after, before)).toBe('');
    const many = viewOf(Object.fromEntries([1, 2, 3, 4, 5].map((n) => [`p${n}`, problem({ severity: 'critical' })])));
    expect(newlyCritical(before, many)).toMatch(/^New critical problems\. .* And 2 more\.$/);
  });
});
