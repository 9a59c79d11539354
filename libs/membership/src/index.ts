export { keyRotationOf, type NodeFacts, nodeFacts, nodeFingerprint, type NodeObject } from './node-facts.ts';
export { type Ineligible, isExternal, isSelected, poolOf, whyIneligible } from './pool-match.ts';
export { compareSites, indexSites, type SiteIndex, type SiteOverlap } from './site-match.ts';
