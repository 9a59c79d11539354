import type { ClusterView } from '@unbounded/status';
import { compareNames } from './sort.ts';
import type { Problem, Severity } from './types.ts';

export const SEVERITIES = ['critical', 'warning', 'info'] as const;

export interface ProblemRow extends Problem {
  readonly id: string;
}

const rows = new WeakMap<Problem, ProblemRow>();
const rowOf = (id: string, problem: Problem): ProblemRow => {
  const known = rows.get(problem);
  if (known?.id === id) return known;
  const row = { ...problem, id };
  rows.set(problem, row);
  return row;
};

/** In the order of the view. One that it does not order comes after those that it does, by severity and age. */
export const orderedProblems = ({ problems, order }: Pick<ClusterView, 'problems' | 'order'>): ProblemRow[] => {
  const isOrdered = new Set(order);
  const ordered = [...isOrdered].flatMap((id) => (Object.hasOwn(problems, id) ? [rowOf(id, problems[id]!)] : []));
  const others = Object.entries(problems)
    .filter(([id]) => !isOrdered.has(id))
    .map(([id, problem]) => rowOf(id, problem))
    .sort(
      (a, b) =>
        SEVERITIES.indexOf(a.severity) - SEVERITIES.indexOf(b.severity) ||
        compareNames(a.since, b.since) ||
        compareNames(a.id, b.id),
    );
  return [...ordered, ...others];
};

export interface ProblemFilter {
  readonly severity?: string | undefined;
  readonly site?: string | undefined;
  /** Words that name, reason or message hold, all of them. */
  readonly q?: string | undefined;
}

/** Whether all words are in one of the texts each. */
export const hasWords = (q: string | undefined, texts: readonly (string | undefined)[]): boolean => {
  const words = (q ?? '').toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return true;
  const all = texts.flatMap((text) => text?.toLowerCase() ?? []);
  return words.every((word) => all.some((text) => text.includes(word)));
};

export const filterProblems = <T extends Problem>(problems: readonly T[], { severity, site, q }: ProblemFilter): T[] =>
  problems.filter(
    (problem) =>
      (!severity || problem.severity === severity) &&
      (!site || problem.sites.includes(site) || (problem.kind === 'Site' && problem.name === site)) &&
      hasWords(q, [problem.name, problem.reason, problem.message, problem.consequence]),
  );

export const problemsOf = (
  view: Pick<ClusterView, 'problems' | 'order'>,
  kind: Problem['kind'],
  name: string,
): ProblemRow[] => orderedProblems(view).filter((problem) => problem.kind === kind && problem.name === name);

const MOST_TOLD = 3;

/**
 * What a screen reader is told after an update: critical problems that were not there before. Of many at once the first ones and their number.
 * The first view tells nothing: the page itself does.
 */
export const newlyCritical = (before: ClusterView | undefined, after: ClusterView | undefined): string => {
  if (!before || !after || before.problems === after.problems) return '';
  const isCritical = (severity: Severity | undefined): boolean => severity === 'critical';
  const added = orderedProblems(after).filter(
    ({ id, severity }) => isCritical(severity) && !isCritical(before.problems[id]?.severity),
  );
  const told = added.slice(0, MOST_TOLD).map(({ kind, name, message }) => `${kind} ${name}: ${message}`);
  if (added.length === 0) return '';
  const more = added.length > MOST_TOLD ? ` And ${added.length - MOST_TOLD} more.` : '';
  return `New critical ${added.length === 1 ? 'problem' : 'problems'}. ${told.join('; ')}.${more}`;
};
