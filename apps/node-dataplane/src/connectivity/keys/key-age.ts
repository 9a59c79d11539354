import { createHash } from 'node:crypto';

/** When a key is too old. Nodes whose keys were made together do not exchange them together. */

/** Of the greatest age: within this last part of it, each node at a point of its own, the key is exchanged. */
const SPREAD = 0.25;

/** The same for the same node and generation, and evenly spread over all: 0 to 1. */
const pointOf = (node: string, generation: number): number =>
  createHash('sha256').update(`${node} ${generation}`).digest().readUInt32BE(0) / 2 ** 32;

export const keyLifetimeMs = (maxAgeMs: number, node: string, generation: number): number =>
  maxAgeMs * (1 - SPREAD * pointOf(node, generation));
