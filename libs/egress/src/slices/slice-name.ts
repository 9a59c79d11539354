import { fingerprint } from '../rendezvous.ts';

/** Longest name of an object. */
const LONGEST_NAME = 253;
const LONGEST_SUFFIX = '-9999'.length;

/** The name of a node's slice. A node with a name too long for it is named by a part of it and a fingerprint. */
export const sliceName = (node: string, index: number): string => {
  const longest = LONGEST_NAME - LONGEST_SUFFIX;
  const short = node.length <= longest ? node : `${node.slice(0, longest - 9)}-${fingerprint(node)}`;
  return `${short}-${index}`;
};
