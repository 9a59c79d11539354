import { expect, test } from 'vitest';
import { parseRequest } from './command-line.ts';

test.each([
  [[], { kind: 'tier', full: false }],
  [['full'], { kind: 'tier', full: true }],
  [['unit', 'libs/ip', '-t', 'a'], { kind: 'layer', layer: 'unit', args: ['libs/ip', '-t', 'a'] }],
  [['affected'], { kind: 'affected', base: undefined }],
  [['affected', 'HEAD~2'], { kind: 'affected', base: 'HEAD~2' }],
  [['check'], { kind: 'layer', layer: 'check', args: [] }],
  [['faults', 'W-05'], { kind: 'layer', layer: 'faults', args: ['W-05'] }],
  [['flaky', 'kernel', '3'], { kind: 'flaky', interrupted: false, layer: 'kernel', times: 3, args: [] }],
  [['interrupted', 'kube', '1'], { kind: 'flaky', interrupted: true, layer: 'kube', times: 1, args: [] }],
  [['properties', '50', 'libs/ip'], { kind: 'properties', times: 50, args: ['libs/ip'] }],
] as const)('tools/test %j', (words, request) => {
  expect(parseRequest(words)).toEqual(request);
});

test.each([
  [['untit'], '"untit": it must be one of full, affected, flaky, interrupted, properties, check, faults, unit,'],
  [['full', 'x'], 'full: "x" is one word too many: it takes none'],
  [['affected', 'a', 'b'], 'affected: "b" is one word too many: it takes a commit'],
  [['flaky', 'kernel'], 'flaky LAYER N: N is "", it must be an integer from 1 to 9999'],
  [['flaky', 'kernel', '1e3'], 'N is "1e3"'],
  [['properties', 'libs/ip'], 'properties N: N is "libs/ip"'],
  [['flaky', 'kernle', '3'], '"kernle" is not a layer'],
] as const)('tools/test %j is refused', (words, message) => {
  expect(() => parseRequest(words)).toThrow(message);
});
