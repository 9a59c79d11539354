import type { Node } from './objects.ts';

/** A Node without the list of images that its kubelet has pulled: the larger part of it, read by the scheduler only. */
export const withoutImages = (node: Node): Node => {
  if (node.status?.images === undefined) return node;
  const { images: _, ...status } = node.status;
  return { ...node, status };
};
