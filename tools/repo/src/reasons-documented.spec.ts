import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { expect, test } from 'vitest';
import { files, root } from '@unbounded/testing/tree';

/**
 * An operator looks up the reason of a condition or an Event in the documents: each reason is in one of them, as code. In the sources a
 * reason is a literal in CamelCase: in the value or the type of a property, variable or parameter of one of these names, or in a call
 * at the place of such a parameter. The last three are names that a reason has on its way into a condition.
 */
const NAMES: ReadonlySet<string> = new Set(['reason', 'usage', 'trouble', 'failure']);
const CAMEL_CASE = /^[A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*$/;

/** Tests; and the status aggregator: what it rejects is a label of a metric, and its view names problems of its own. */
const LEFT_OUT =
  /\.(spec|scenario|testdata|fuzz)\.ts$|\/(test|testing)\/|-testing\/|testdata|^(apps\/(status-aggregator|dashboard)|libs\/status)\//;

/** Reasons for which a controller removes an object: its log has them, no condition and no Event. */
const ONLY_IN_LOGS = [
  ...['Abandoned', 'EndpointGone', 'NodeGone', 'PodElsewhere', 'PodGone', 'Unreleased'], // l2-networks
  ...['NodeChanged', 'PodEnded', 'PodGone', 'PodReplaced', 'TailnetGone'], // tailnet-registrar
];

interface Found {
  readonly reasons: readonly string[];
  /** Names of types and constants whose literals are reasons. */
  readonly references: readonly string[];
  /** Literals of types by name: other files import them. */
  readonly types: ReadonlyMap<string, readonly string[]>;
}

interface Parts {
  readonly literals: string[];
  readonly names: string[];
}

const isReason = (name: ts.Node): boolean => ts.isIdentifier(name) && NAMES.has(name.text);

const OTHERS = [ts.isCallExpression, ts.isArrowFunction, ts.isElementAccessExpression, ts.isObjectLiteralExpression];

/** Literals and names of a value or a type; neither what a condition compares nor parts of other values. */
const partsOf = (node: ts.Node, parts: Parts = { literals: [], names: [] }): Parts => {
  if (ts.isStringLiteral(node) && CAMEL_CASE.test(node.text)) parts.literals.push(node.text);
  if (ts.isIdentifier(node)) parts.names.push(node.text);
  const isComparison = ts.isBinaryExpression(node) && node.operatorToken.kind !== ts.SyntaxKind.QuestionQuestionToken;
  if (!isComparison && !OTHERS.some((is) => is(node))) ts.forEachChild(node, (child) => void partsOf(child, parts));
  return parts;
};

const nodesOf = (node: ts.Node): ts.Node[] => {
  const children: ts.Node[] = [];
  ts.forEachChild(node, (child) => void children.push(child));
  return [node, ...children.flatMap(nodesOf)];
};

const variablesOf = (nodes: readonly ts.Node[]) =>
  nodes.flatMap((node) =>
    ts.isVariableDeclaration(node) && ts.isIdentifier(node.name) && node.initializer
      ? [{ name: node.name.text, value: node.initializer }]
      : [],
  );

/** What stands for a reason: values, types, and arguments of functions of the file. */
const placesOf = (nodes: readonly ts.Node[], functions: ReadonlyMap<string, number>): ts.Node[] =>
  nodes
    .flatMap((node): (ts.Node | undefined)[] => {
      if (ts.isCallExpression(node) && ts.isIdentifier(node.expression)) {
        const at = functions.get(node.expression.text);
        return at === undefined ? [] : [node.arguments[at]];
      }
      if ((ts.isPropertyAssignment(node) || ts.isVariableDeclaration(node)) && isReason(node.name))
        return [node.initializer];
      return (ts.isPropertySignature(node) || ts.isParameter(node)) && isReason(node.name) ? [node.type] : [];
    })
    .filter((node) => node !== undefined);

const findIn = (text: string): Found => {
  const nodes = nodesOf(ts.createSourceFile('', text, ts.ScriptTarget.Latest));
  const variables = variablesOf(nodes);
  const functions = variables.flatMap(({ name, value }) => {
    const at = ts.isArrowFunction(value) ? value.parameters.findIndex((parameter) => isReason(parameter.name)) : -1;
    return at < 0 ? [] : [[name, at] as const];
  });
  const places = placesOf(nodes, new Map(functions)).map((node) => partsOf(node));
  const references = places.flatMap(({ names }) => names);
  const constants = variables.filter(({ name, value }) => references.includes(name) && ts.isStringLiteral(value));
  const types = nodes.flatMap((node) =>
    ts.isTypeAliasDeclaration(node) ? [[node.name.text, partsOf(node.type).literals] as const] : [],
  );
  return {
    reasons: [...places, ...constants.map(({ value }) => partsOf(value))].flatMap(({ literals }) => literals),
    references,
    types: new Map(types),
  };
};

const reasonsOf = (texts: readonly string[]): string[] => {
  const found = texts.map(findIn);
  const references = new Set(found.flatMap((one) => one.references));
  const ofTypes = found.flatMap(({ types }) => [...types].flatMap(([name, all]) => (references.has(name) ? all : [])));
  return [...new Set([...found.flatMap(({ reasons }) => reasons), ...ofTypes])].sort();
};

/** Words of code that stands in a line, not of examples. */
const codeOf = (markdown: string): string[] =>
  [...markdown.replaceAll(/^ *```[^]*?^ *```/gm, '').matchAll(/`([^`\n]+)`/g)].flatMap(([, code]) =>
    code!.split(/\W+/),
  );

const read = (file: string): string => readFileSync(join(root, file), 'utf8');
const sources = files('apps/*/src/*.ts', 'libs/*/src/*.ts').filter(
  (file) => existsSync(join(root, file)) && !LEFT_OUT.test(file),
);
const reasons = reasonsOf(sources.map(read));

test('a reason is found in values, types, constants and calls, and nothing else is', () => {
  const text = `
    const FAILED = 'Constant';
    type Cause = 'OfType' | 'OfOther';
    interface One { readonly reason: Cause | 'OfProperty'; readonly kind: 'Kind' }
    const bad = (message: string, reason: string) => ({ status: 'False', reason, message });
    bad('Message', 'OfCall');
    const reason = kind === 'Compared' ? 'OfVariable' : (other ?? 'OfDefault');
    log({ reason: FAILED, name: 'Name' }, { reason: 'in words' }, { reason: listed('Argument') }, { failure: { to: 'Part' } });`;
  expect(reasonsOf([text])).toEqual([
    'Constant',
    'OfCall',
    'OfDefault',
    'OfOther',
    'OfProperty',
    'OfType',
    'OfVariable',
  ]);
});

test('every reason of a condition or an Event is in the documents', () => {
  const documented = new Set(files('docs/*.md').flatMap((file) => codeOf(read(file))));
  expect(reasons.length).toBeGreaterThan(200);
  expect(reasons.filter((reason) => !documented.has(reason) && !ONLY_IN_LOGS.includes(reason))).toEqual([]);
});

test('nothing is excepted without need', () => {
  expect(ONLY_IN_LOGS.filter((reason) => !reasons.includes(reason))).toEqual([]);
});
