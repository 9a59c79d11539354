import type { KindTable, ObjectsOf, topologyKinds } from '@unbounded/crds';
import type { NodeFacts } from './object-files.ts';

/** The objects as they are now. */
export interface Snapshot<T extends KindTable = typeof topologyKinds> {
  readonly objects: ObjectsOf<T>;
  /** Undefined: the Node is not there (yet). */
  readonly node: NodeFacts | undefined;
  /** Changes whenever anything in it changed. */
  readonly version: number;
}

/** Which objects of a kind are asked for, as the API server filters them; from a directory come all. */
export type InputFilters<T extends KindTable> = {
  readonly [Name in keyof T]?: { readonly fieldSelector: string } | { readonly labelSelector: string };
};

/** Where a section's objects come from. */
export interface WorldSource<T extends KindTable = typeof topologyKinds> {
  /** Undefined until everything has been read once. */
  snapshot(): Snapshot<T> | undefined;
  onChange(handler: () => void): void;
  stop(): Promise<void>;
}
