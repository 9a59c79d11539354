import { expect, test } from 'vitest';
import { formerTree } from './former-tree.ts';

test('a commit that this clone does not have is named, with how to get it', () => {
  const commit = '0123456789012345678901234567890123456789';
  expect(() => formerTree(commit)).toThrow(
    new RegExp(`commit ${commit}, from which to upgrade, is not in the history of .*: git fetch --unshallow`),
  );
});
