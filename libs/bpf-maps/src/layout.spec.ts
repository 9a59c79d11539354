import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { LAYOUT_VERSION, layoutFingerprint, MAPS } from './index.ts';

const NODE = join(import.meta.dirname, '../../../tools/node');

/**
 * When this fails, a change has made another layout: raise LAYOUT_VERSION in shape.ts if a release had the former one, then put the new
 * fingerprint here (CONTRIBUTING, "To change the layout of a map").
 */
test('a layout that differs has another version', () => {
  expect(`v${LAYOUT_VERSION} ${layoutFingerprint()}`).toBe('v1 e7573bc1');
});

test('the stand-in for the next layout has the next version, other sizes and another fingerprint', () => {
  const script = `import('${import.meta.dirname}/index.ts').then(({ LAYOUT_VERSION, layoutFingerprint, MAPS }) =>
    console.log(JSON.stringify({ version: LAYOUT_VERSION, fingerprint: layoutFingerprint(), MAPS })))`;
  const printed = execFileSync(NODE, ['--conditions=next-layout', '-e', script], { encoding: 'utf8' });
  const next = JSON.parse(printed) as { version: number; fingerprint: string; MAPS: typeof MAPS };
  expect(next.version).toBe(LAYOUT_VERSION + 1);
  expect(next.fingerprint).not.toBe(layoutFingerprint());
  for (const name of ['unbounded_endpoints_v4', 'unbounded_nexthop_groups'] as const)
    expect(next.MAPS[name].valueBytes, name).not.toBe(MAPS[name].valueBytes);
});
