import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { files, root } from '@unbounded/testing/tree';

/** Unit specs of a worker share what is loaded: a mock would not reach a module that a spec before has loaded, or would stay for the next. */

const MOCK = /\bvi\s*\.\s*(?:mock|doMock|hoisted)\(/;

test('no spec replaces a module as a whole', () => {
  const specs = files('*.spec.ts').filter((file) => file !== 'tools/repo/src/module-mocks.spec.ts');
  const found = specs.filter((file) => MOCK.test(readFileSync(join(root, file), 'utf8')));
  expect([found, specs.length > 400]).toEqual([[], true]);
});

test.each(["vi.mock('node:fs', () => ({}))", 'vi.hoisted(() => 1)'])('%s is found', (text) => {
  expect(MOCK.test(text)).toBe(true);
});
