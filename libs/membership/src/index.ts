export { type Claim, holdersOf, lostPrefixes, type PrefixClaim, type PrefixLoss } from './claims.ts';
export { type ExternalAddresses, parseExternalAddresses, tryParseAddress } from './external-address.ts';
export { listed } from './listed.ts';
export { keyRotationOf, type NodeFacts, nodeFacts, nodeFingerprint, type NodeObject } from './node-facts.ts';
export { type NodeProblem, type NodeProblemReason, quote } from './node-problem.ts';
export {
  canKubeletSet,
  type Ineligible,
  isExternal,
  isSelected,
  isSelectorProtected,
  poolOf,
  whyIneligible,
} from './pool-match.ts';
export { type NodeRecord, readRecords, recordsByNode } from './records.ts';
export { type SettlementWorld, settleNodes } from './settle.ts';
export type { SettledNode } from './settled-node.ts';
export { type SiteBlocks, siteBlocks } from './site-blocks.ts';
export { compareSites, indexSites, type SiteIndex, type SiteOverlap } from './site-match.ts';
