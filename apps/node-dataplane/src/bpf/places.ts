import type { Direction } from '@unbounded/libbpf-ts';

/** Where a program stands. */
export interface Place {
  readonly program: string;
  readonly direction: Direction;
}

/** By the name of a device; undefined: it has no program of ours. */
export type PlaceOf = (device: string) => Place | undefined;

/** A device that is there. */
export interface Device {
  readonly name: string;
  readonly index: number;
}
