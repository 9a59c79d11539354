import { type Series, TARGET_LABELS } from './declared-series.ts';
import { childrenOf, type Expression, parsePromql, selectorsOf, type SyntaxNode } from './promql-tree.ts';
import { createLabelRules } from './result-labels.ts';

/** Whether an expression can have a result: metrics that there are, labels that they have, functions that fit their type. */

export interface CheckOptions {
  readonly series: ReadonlyMap<string, Series>;
  /** Names that other programs have as well need a matcher of our jobs. False: they are taken without. */
  readonly needsJob?: boolean;
}

export interface Checked {
  readonly metrics: readonly string[];
  /** Those that the result can have. */
  readonly labels: ReadonlySet<string>;
}

/** Their results are of counters and of nothing else. */
const OF_COUNTERS = new Set(['rate', 'increase', 'irate', 'resets']);

/** The function that a range selector is the argument of. */
const functionOf = ({ textOf }: Expression, selector: SyntaxNode): string | undefined => {
  for (let node = selector.parent; node; node = node.parent) {
    if (node.name === 'FunctionCall') return textOf(node.firstChild!);
    if (node.name === 'AggregateExpr' || node.name === 'BinaryExpr') return undefined;
  }
  return undefined;
};

const checkType = (name: string, { type }: Series, calledBy: string | undefined): void => {
  const isOfCounters = calledBy !== undefined && OF_COUNTERS.has(calledBy);
  if (type === 'counter' && !isOfCounters)
    throw new Error(`${name} is a counter: it must be the argument of ${[...OF_COUNTERS].join(', ')}`);
  if (type === 'gauge' && isOfCounters)
    throw new Error(`${name} is a gauge: ${calledBy}() must have a counter as its argument`);
};

const selectorChecks = (expression: Expression, { series, needsJob = true }: CheckOptions) => {
  return (selector: SyntaxNode): string => {
    const [first, matchers] = childrenOf(selector);
    if (first?.name !== 'Identifier')
      throw new Error(`"${expression.textOf(selector)}" must begin with a metric's name`);
    const name = expression.textOf(first);
    const found = series.get(name);
    if (!found) throw new Error(`${name} must be a metric that our code declares, or one of a target`);
    const used = (matchers ? childrenOf(matchers) : []).map((matcher) => expression.textOf(matcher.firstChild!));
    const labels = [...found.labels, ...TARGET_LABELS];
    const unknown = used.find((label) => !labels.includes(label));
    if (unknown !== undefined)
      throw new Error(`${name} has no label "${unknown}": it must be one of ${labels.join(', ')}`);
    const needed = name === 'ALERTS' ? 'alertname' : 'job';
    if (needsJob && !name.startsWith('unbounded_') && !used.includes(needed))
      throw new Error(`${name} is not ours alone: its selector must have the label ${needed}`);
    checkType(name, found, functionOf(expression, selector));
    return name;
  };
};

/** @throws Error that names what is wrong in the expression */
export const checkPromql = (text: string, options: CheckOptions): Checked => {
  const expression = parsePromql(text);
  const check = selectorChecks(expression, options);
  try {
    const metrics = selectorsOf(expression).map(check);
    return { metrics, labels: createLabelRules(expression, options.series)(expression.top) };
  } catch (error) {
    throw new Error(`${(error as Error).message}, in: ${text}`, { cause: error });
  }
};
