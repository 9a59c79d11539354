import type { NodeFacts } from './node-facts.ts';

/** By which the older of two Nodes is known: creation time, then uid. */
export const ageOf = ({ createdAt, uid, name }: NodeFacts): string => `${createdAt} ${uid} ${name}`;
