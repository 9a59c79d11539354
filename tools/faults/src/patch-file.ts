import { basename } from 'node:path';

/**
 * A patch that puts a fault back. Before the unified diff it says in lines of its own what the fault is and which tests
 * notice it:
 *
 *     fault: A peer that never answered keeps carrying.
 *     caught by: unit:libs/health/src/selection.spec.ts -t "one that never answered carries nothing while anyone else ever did"
 */
export interface Fault {
  /** The number of the fault, for example W-05, H-C7, H-8 or L-2; several patches may put parts of one fault back. */
  readonly id: string;
  /** The patch's name without its ending. */
  readonly name: string;
  readonly says: string;
  /** Each of them fails while the fault is there. At least one. */
  readonly catchers: readonly Catcher[];
  /** Paths that the patch changes, from the top of the tree. */
  readonly changed: readonly string[];
}

/** A test by its layer, its file and a part of its name. */
export interface Catcher {
  readonly project: string;
  readonly file: string;
  readonly test: string;
}

const NAME = /^(W-\d\d|H-[A-Z]?\d+|[LT]-\d+)-[a-z0-9-]+$/;
const CATCHER = /^([a-z-]+):(\S+) -t "(.+)"$/;

const parseCatcher = (name: string, text: string): Catcher => {
  const [, project, file, test] = CATCHER.exec(text) ?? [];
  if (project === undefined || file === undefined || test === undefined)
    throw new Error(`${name}: "caught by: ${text}" names no test: write project:path -t "part of the test's name"`);
  return { project, file, test };
};

/** @throws Error naming the patch and what it lacks */
export const parsePatch = (path: string, text: string): Fault => {
  const name = basename(path, '.patch');
  const id = NAME.exec(name)?.[1];
  if (id === undefined) throw new Error(`${name}: the name of a patch is like W-05-short-name.patch`);
  const head = text.slice(0, Math.max(text.search(/^diff --git /m), 0));
  const valuesOf = (key: string): string[] =>
    [...head.matchAll(new RegExp(`^${key}: (.*)$`, 'gm'))].map(([, value]) => value!.trim());
  const [says] = valuesOf('fault');
  const catchers = valuesOf('caught by').map((value) => parseCatcher(name, value));
  const changed = [...text.matchAll(/^\+\+\+ b\/(\S+)$/gm)].map(([, file]) => file!);
  if (says === undefined) throw new Error(`${name}: no line "fault: …" before the diff says what the fault is`);
  if (catchers.length === 0) throw new Error(`${name}: no line "caught by: …" before the diff names a test`);
  if (changed.length === 0) throw new Error(`${name}: the diff changes no file: make it by git diff`);
  return { id, name, says, catchers, changed };
};
