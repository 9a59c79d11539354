import { nodeBlockLength, type PodCidrAssignment, type Site } from '@unbounded/crds';
import { type Family, type Prefix, tryParsePrefix } from '@unbounded/ip';
import { RE2JS } from 're2js';

/** Where the blocks of one family come from. */
export interface FamilyPools {
  readonly family: Family;
  readonly pools: readonly Prefix[];
  /** Prefix length of a node's block. */
  readonly blockLength: number;
}

/** One entry of a Site's podCidrAssignments, parsed. */
export interface Assignment {
  /** Position in the Site. */
  readonly index: number;
  readonly families: readonly FamilyPools[];
  matches(nodeName: string): boolean;
}

/** What is wrong with a Site's assignments; the rest of them still works. */
export interface AssignmentProblem {
  readonly reason: 'InvalidRegex' | 'InvalidBlockSize';
  readonly message: string;
}

export interface ParsedAssignments {
  /** The enabled ones in the order in which they are asked. */
  readonly assignments: readonly Assignment[];
  readonly problems: readonly AssignmentProblem[];
}

const DEFAULT_PRIORITY = 100;
const parseFamilies = (assignment: PodCidrAssignment, at: string, problems: AssignmentProblem[]): FamilyPools[] => {
  const all = assignment.cidrBlocks.flatMap((text) => tryParsePrefix(text) ?? []);
  return ([4, 6] as const).flatMap((family) => {
    const ofFamily = all.filter((pool) => pool.family === family);
    if (ofFamily.length === 0) return [];
    const blockLength = nodeBlockLength(family, ofFamily[0]!.length, assignment);
    const pools = ofFamily.filter(({ length }) => length <= blockLength);
    if (pools.length < ofFamily.length) {
      const message = `${at}.nodeBlockSizes.ipv${family} is ${blockLength}, which is shorter than a pool in cidrBlocks: that pool is not used`;
      problems.push({ reason: 'InvalidBlockSize', message });
    }
    return [{ family, pools, blockLength }];
  });
};

const compileRegexes = (assignment: PodCidrAssignment, at: string, problems: AssignmentProblem[]) => {
  const texts = assignment.nodeRegex ?? [];
  const compiled = texts.flatMap((text, index) => {
    try {
      return [RE2JS.compile(text)];
    } catch (error) {
      const message = `${at}.nodeRegex[${index}] is ${JSON.stringify(text)}, which is no RE2 expression (${(error as Error).message}): it matches no node`;
      problems.push({ reason: 'InvalidRegex', message });
      return [];
    }
  });
  // A list of which nothing compiles is not an empty list: it matches no node rather than all.
  return (name: string): boolean => texts.length === 0 || compiled.some((regex) => regex.matcher(name).find());
};

/** Sites from a cache do not change: expressions are compiled once. */
const known = new WeakMap<Site, ParsedAssignments>();

const parse = ({ spec }: Site): ParsedAssignments => {
  const problems: AssignmentProblem[] = [];
  const assignments = spec.podCidrAssignments
    .map((assignment, index) => ({ assignment, index }))
    .filter(({ assignment }) => assignment.assignmentEnabled !== false)
    .map(({ assignment, index }) => {
      const at = `spec.podCidrAssignments[${index}]`;
      return {
        index,
        priority: assignment.priority ?? DEFAULT_PRIORITY,
        families: parseFamilies(assignment, at, problems),
        matches: compileRegexes(assignment, at, problems),
      };
    })
    .sort((a, b) => a.priority - b.priority || a.index - b.index);
  return { assignments, problems };
};

export const parseAssignments = (site: Site): ParsedAssignments => {
  const parsed = known.get(site) ?? parse(site);
  known.set(site, parsed);
  return parsed;
};
