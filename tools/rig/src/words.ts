import type { LabLayout, LabNode } from './layout.ts';

/** What a person's words on the command line mean. */

/** The words were wrong; the message says what would be right. Exit status 2. */
export class UsageError extends Error {}

/** @throws UsageError that names the nodes there are */
export const nodeNamed = (layout: LabLayout, name: string | undefined): LabNode => {
  const node = layout.nodes.find((candidate) => candidate.name === name);
  if (node) return node;
  const known = layout.nodes.map((candidate) => candidate.name).join(', ');
  throw new UsageError(name === undefined ? `which node? There are ${known}` : `no node ${name}: there are ${known}`);
};
