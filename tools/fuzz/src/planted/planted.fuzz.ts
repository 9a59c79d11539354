import type { FuzzTarget } from '@unbounded/testing';
import { decodePlanted, PlantedError } from './planted.ts';

export const target: FuzzTarget = {
  seeds: [new Uint8Array(4)],
  maxBytes: 16,
  run: (input) => {
    try {
      decodePlanted(input);
    } catch (error) {
      if (!(error instanceof PlantedError)) throw error;
    }
  },
};
