import { expect, test } from 'vitest';
import { parsePatch } from './patch-file.ts';

const DIFF = `diff --git a/libs/ip/src/a.ts b/libs/ip/src/a.ts
--- a/libs/ip/src/a.ts
+++ b/libs/ip/src/a.ts
@@ -1,1 +1,1 @@
-fault: of old
+fault: of new
`;

test('says what the fault is, who catches it and what it changes', () => {
  const text = `fault: It is wrong.\ncaught by: unit:a/b.spec.ts -t "says \\"no\\""\ncaught by: bpf:c.bpf.spec.ts -t "x"\n\n${DIFF}`;
  expect(parsePatch('tools/faults/W-05-it-is-wrong.patch', text)).toEqual({
    id: 'W-05',
    name: 'W-05-it-is-wrong',
    says: 'It is wrong.',
    catchers: [
      { project: 'unit', file: 'a/b.spec.ts', test: 'says \\"no\\"' },
      { project: 'bpf', file: 'c.bpf.spec.ts', test: 'x' },
    ],
    changed: ['libs/ip/src/a.ts'],
  });
});

test.each([
  ['broken.patch', DIFF, 'the name of a patch is like W-05-short-name.patch'],
  ['W-05-x.patch', DIFF, 'no line "fault: …" before the diff'],
  ['W-05-x.patch', `fault: x\n${DIFF}`, 'no line "caught by: …" before the diff'],
  ['W-05-x.patch', `fault: x\ncaught by: a.spec.ts\n${DIFF}`, 'names no test: write project:path -t'],
  ['W-05-x.patch', 'fault: x\ncaught by: unit:a.spec.ts -t "x"\n', 'no line "fault: …" before the diff'],
  ['W-05-x.patch', 'fault: x\ncaught by: unit:a.spec.ts -t "x"\ndiff --git a/b b/b\n', 'the diff changes no file'],
])('%s is refused when %j: %s', (path, text, message) => expect(() => parsePatch(path, text)).toThrow(message));
