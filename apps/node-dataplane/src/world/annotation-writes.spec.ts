import { annotations, KEY_ANNOTATIONS } from '@unbounded/crds';
import { ApiError, TransportError } from '@unbounded/kube';
import { beforeEach, expect, test } from 'vitest';
import { createAnnotationWrites } from './annotation-writes.ts';

/** An API server that refuses annotations of these names, whole patches of course. */
let refused: Set<string>;
let present: Record<string, string | null>;
let patches: string[][];
let elapsedMs: number;
beforeEach(() => {
  [refused, present, patches, elapsedMs] = [new Set(), {}, [], 0];
});
const patch = async (given: Readonly<Record<string, string | null>>): Promise<void> => {
  patches.push(Object.keys(given).map((name) => name.replace(/.*\//, '')));
  const bad = Object.keys(given).filter((name) => refused.has(name));
  if (bad.length > 0) throw new ApiError('PATCH', 403, { message: `not ${bad.join(', ')}` });
  present = { ...present, ...given };
};
const open = () => {
  const writes = createAnnotationWrites(() => elapsedMs);
  return async (wanted: Readonly<Record<string, string | null>>): Promise<readonly string[]> =>
    (await writes.write({ wanted, present }, patch)).map(({ reason, message }) => `${reason} ${message}`);
};
const LATER = 'net.unbounded-cloud.io/later';
const wanted = {
  [annotations.wireGuardPublicKey]: 'k',
  [annotations.wireGuardKeyGeneration]: null,
  [annotations.wireGuardNextPublicKey]: 'l',
  [annotations.tunnelMtu]: '1400',
  [LATER]: 'x',
};

test('what differs is written in one patch, and not again', async () => {
  const write = open();
  expect([await write(wanted), await write(wanted)]).toEqual([[], []]);
  expect(patches).toEqual([['wg-pubkey', 'wg-key-generation', 'wg-next-pubkey', 'tunnel-mtu', 'later']]);
});

test('one that is refused keeps the others from nothing, and is a problem with its name and the answer', async () => {
  refused.add(LATER);
  const [problem = ''] = await open()(wanted);
  expect(problem).toMatch(/^AnnotationRefused .*net\.unbounded-cloud\.io\/later of this Node: .*403 not .*later/);
  expect(present).toMatchObject({ [annotations.wireGuardPublicKey]: 'k', [annotations.tunnelMtu]: '1400' });
});

test('keys are written together or not at all', async () => {
  refused.add(annotations.wireGuardNextPublicKey);
  const problems = await open()(wanted);
  expect(problems).toHaveLength(1);
  expect(Object.keys(present)).toEqual([annotations.tunnelMtu, LATER]);
  for (const name of KEY_ANNOTATIONS) expect(problems[0]).toContain(name);
});

test('what is refused is tried again after a minute, at once when it changes, and is no problem when it is taken', async () => {
  refused.add(LATER);
  const write = open();
  const first = await write(wanted);
  patches = [];
  for (elapsedMs of [0, 30_000, 59_999]) expect(await write(wanted)).toEqual(first);
  expect(patches).toEqual([]);
  expect(await write({ ...wanted, [annotations.tunnelMtu]: '1380' })).toEqual(first);
  expect(patches).toEqual([['tunnel-mtu']]);
  const other = { ...wanted, [annotations.tunnelMtu]: '1380', [LATER]: 'y' };
  await write(other);
  expect(patches.slice(1)).toEqual([['later']]);
  refused.clear();
  expect(await write(other)).toHaveLength(1);
  elapsedMs += 60_000;
  expect(await write(other)).toEqual([]);
  expect(present[LATER]).toBe('y');
});

test('what is not wanted any more is no problem any more', async () => {
  refused.add(LATER);
  const write = open();
  await write(wanted);
  const { [LATER]: _, ...without } = wanted;
  expect(await write(without)).toEqual([]);
});

test('an API server that cannot be asked is no refusal: the report fails as a whole and is repeated', async () => {
  const writes = createAnnotationWrites();
  const failing = async (): Promise<void> => {
    throw new TransportError('refused');
  };
  await expect(writes.write({ wanted, present }, failing)).rejects.toThrow('refused');
});
