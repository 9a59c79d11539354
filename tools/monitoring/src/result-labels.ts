import { type Series, TARGET_LABELS } from './declared-series.ts';
import { childrenOf, type Expression, type SyntaxNode, within } from './promql-tree.ts';

/** Which labels the result of an expression can have, so that what groups by others, or shows them, is found out. */

type Labels = ReadonlySet<string>;

const NONE: Labels = new Set();
/** Aggregations that return some of their series, as they are. */
const SELECTING = new Set(['topk', 'bottomk', 'limitk']);
const SET_OPERATORS = new Set(['Or', 'And', 'Unless']);
const VECTORS = new Set(['VectorSelector', 'AggregateExpr', 'FunctionCall', 'BinaryExpr', 'ParenExpr']);
const RANGES = new Set(['MatrixSelector', 'SubqueryExpr', 'OffsetExpr', 'StepInvariantExpr', 'UnaryExpr']);

const isVector = ({ name }: SyntaxNode): boolean => VECTORS.has(name) || RANGES.has(name);
const minus = (labels: Labels, away: Iterable<string>): Labels => labels.difference(new Set(away));

const namesIn = ({ textOf }: Expression, node: SyntaxNode | undefined): string[] =>
  node
    ? within(node)
        .filter(({ name }) => name === 'LabelName')
        .map(textOf)
    : [];

const childNamed = (node: SyntaxNode, name: string): SyntaxNode | undefined =>
  childrenOf(node).find((child) => child.name === name);

const checkGrouping = (names: readonly string[], labels: Labels, text: string): void => {
  const lost = names.find((name) => !labels.has(name));
  if (lost === undefined) return;
  throw new Error(`there is no label "${lost}" to group by in "${text}": it must be one of ${[...labels].join(', ')}`);
};

/** @returns the labels of a part of the expression; throws Error where it groups by labels that are not there */
export const createLabelRules = (expression: Expression, series: ReadonlyMap<string, Series>) => {
  const { textOf } = expression;
  const ofSelector = (node: SyntaxNode): Labels =>
    new Set([...(series.get(textOf(node.firstChild!))?.labels ?? []), ...TARGET_LABELS]);

  const ofAggregate = (node: SyntaxNode): Labels => {
    const body = childNamed(node, 'FunctionCallBody')!;
    const inner = labelsOf(childrenOf(body).findLast(isVector)!);
    const modifier = childNamed(node, 'AggregateModifier');
    const names = namesIn(expression, modifier);
    checkGrouping(names, inner, textOf(body));
    if (SELECTING.has(textOf(node.firstChild!))) return inner;
    if (!modifier) return NONE;
    return modifier.firstChild!.name === 'By' ? new Set(names) : minus(inner, names);
  };

  const ofFunction = (node: SyntaxNode): Labels => {
    const name = textOf(node.firstChild!);
    const args = childrenOf(childNamed(node, 'FunctionCallBody')!);
    const vector = args.find(isVector);
    if (!vector || name === 'scalar') return NONE;
    const inner = labelsOf(vector);
    if (name === 'absent') return new Set(namesIn(expression, vector));
    if (name !== 'histogram_quantile') return inner;
    if (!inner.has('le')) throw new Error(`histogram_quantile() must have the label "le" in "${textOf(vector)}"`);
    return minus(inner, ['le']);
  };

  const ofBinary = (node: SyntaxNode): Labels => {
    const [left, right] = childrenOf(node).filter((child) => isVector(child) || child.name.startsWith('Number'));
    const [a, b] = [labelsOf(left!), labelsOf(right!)];
    const clause = childNamed(node, 'MatchingModifierClause');
    const names = namesIn(expression, clause);
    checkGrouping(names, a.union(b), textOf(node));
    if (childrenOf(node).some(({ name }) => SET_OPERATORS.has(name))) return childNamed(node, 'Or') ? a.union(b) : a;
    if (clause && childNamed(clause, 'GroupLeft')) return a.union(new Set(names));
    if (clause && childNamed(clause, 'GroupRight')) return b.union(new Set(names));
    if (clause && childNamed(clause, 'On')) return new Set(names);
    return isVector(left!) && a.size > 0 ? a : b;
  };

  const labelsOf = (node: SyntaxNode): Labels => {
    switch (node.name) {
      case 'VectorSelector':
        return ofSelector(node);
      case 'AggregateExpr':
        return ofAggregate(node);
      case 'FunctionCall':
        return ofFunction(node);
      case 'BinaryExpr':
        return ofBinary(node);
      default: {
        const inner = childrenOf(node).find(isVector);
        return inner ? labelsOf(inner) : NONE;
      }
    }
  };
  return labelsOf;
};
