export { tryParseAddress } from './external-address.ts';
export { listed } from './listed.ts';
export { keyRotationOf, type NodeFacts, nodeFacts, nodeFingerprint, type NodeObject } from './node-facts.ts';
export { type NodeProblem, type NodeProblemReason, quote } from './node-problem.ts';
export { type Ineligible, isSelected, isSelectorProtected, poolOf, whyIneligible } from './pool-match.ts';
export { readRecords, recordsByNode } from './records.ts';
export { settleNodes } from './settle.ts';
export type { SettledNode } from './settled-node.ts';
export { indexSites, type SiteOverlap } from './site-match.ts';
