import { parser } from '@prometheus-io/lezer-promql';

/** The syntax tree of a PromQL expression, by the grammar of Prometheus' own editor. */

export type SyntaxNode = ReturnType<typeof parser.parse>['topNode'];

export interface Expression {
  readonly top: SyntaxNode;
  readonly textOf: (node: SyntaxNode) => string;
}

/** Grafana's variables that stand where PromQL wants a duration; others stand in strings. */
const DURATION_VARIABLES = /\$__(rate_interval|interval|range)\b/g;

export const childrenOf = (node: SyntaxNode): SyntaxNode[] => {
  const children: SyntaxNode[] = [];
  for (let child = node.firstChild; child; child = child.nextSibling) children.push(child);
  return children;
};

/** The node and all below it. */
export const within = (node: SyntaxNode): SyntaxNode[] => [node, ...childrenOf(node).flatMap(within)];

/** The selectors of metrics in an expression, from the left. */
export const selectorsOf = ({ top }: Expression): SyntaxNode[] =>
  within(top).filter(({ name }) => name === 'VectorSelector');

/** @throws Error that shows where the expression is not PromQL */
export const parsePromql = (expression: string): Expression => {
  const text = expression.replaceAll(DURATION_VARIABLES, '5m');
  const top = parser.parse(text).topNode;
  const wrong = within(top).find((node) => node.type.isError);
  if (wrong || !top.firstChild) {
    const at = wrong?.from ?? 0;
    throw new Error(`"${text}" must be PromQL: not understood from character ${at}, "${text.slice(at, at + 20)}"`);
  }
  return { top: top.firstChild, textOf: (node) => text.slice(node.from, node.to) };
};
