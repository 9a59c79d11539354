import { expect, test } from 'vitest';
import { echoFamiliesOf } from './local-node.ts';

test.each([
  ['6.1.0-18-amd64', [4, 6]],
  ['5.14.0-362.el9.x86_64', [4, 6]],
  ['5.10.0-28-amd64', [6]],
  ['4.18.0', [6]],
])('under Linux %s echoes have the families %j', (release, families) => {
  expect(echoFamiliesOf(release)).toEqual(families);
});
