import { type Gateway, L2_LOCATOR_BITS, L2_LOCATOR_BLOCK_BITS, type Site, type SiteNode } from '@unbounded/crds';
import { containsPrefix, formatPrefix, overlaps, type Prefix, specialRangeIn, tryParsePrefix } from '@unbounded/ip';
import type { Problem } from './problem.ts';
import type { SiteModel } from './world.ts';

/** Locators of stretched L2: an IPv6 block of each Site, and one of each node in it. */

const LONGEST_SHOWN = 50;

/** Texts as others write them: another spelling of the same block would be another key. */
const readCanonical = (text: string, length: number): Prefix | undefined => {
  const prefix = tryParsePrefix(text);
  if (prefix?.family !== 6 || prefix.length !== length || specialRangeIn(prefix)) return undefined;
  return formatPrefix(prefix) === text ? prefix : undefined;
};

const ALLOCATED = 'cidr-allocator writes it anew when it is removed';
const PREFIX_APART =
  'see to it that Mesh.spec.l2.locatorPrefix is apart from the cidrBlocks and nodeCidrs of all Sites, and that cidr-allocator runs';

const conflictWith = (block: Prefix, own: string, all: readonly SiteModel[]): string | undefined => {
  for (const { name, podCidrs, nodeCidrs, locatorBlock } of all) {
    const blocks = [...podCidrs, ...nodeCidrs, ...(locatorBlock && name !== own ? [locatorBlock] : [])];
    const found = blocks.find((other) => overlaps(other, block));
    if (found) return `overlaps ${formatPrefix(found)} of Site ${name}`;
  }
  return undefined;
};

/** The sites, in the order of their names, with their locator blocks: of two that overlap the first holds. */
export const withLocatorBlocks = (
  models: readonly SiteModel[],
  objects: readonly Site[],
  problems: Problem[],
): SiteModel[] => {
  const texts = new Map(objects.map(({ metadata, status }) => [metadata.name, status?.l2LocatorBlock]));
  const sites = [...models];
  for (const [index, site] of sites.entries()) {
    const text = texts.get(site.name);
    if (text === undefined) continue;
    const where = `Site ${site.name} status.l2LocatorBlock: "${text.slice(0, LONGEST_SHOWN)}"`;
    const block = readCanonical(text, L2_LOCATOR_BLOCK_BITS);
    const conflict = block && conflictWith(block, site.name, sites);
    if (block && conflict === undefined) sites[index] = { ...site, locatorBlock: block };
    else
      problems.push({
        reason: block ? 'LocatorBlockOverlap' : 'InvalidLocatorBlock',
        message: `${where} ${conflict ?? `must be a canonical IPv6 /${L2_LOCATOR_BLOCK_BITS}`}: frames of stretched L2 do not reach nodes of the Site; ${block ? PREFIX_APART : ALLOCATED}`,
      });
  }
  return sites;
};

/** The locator that the objects give a node; undefined, with a problem, when it is none of its Site's. */
export const readLocator = (
  { name, l2Locator: text }: SiteNode | Gateway,
  site: SiteModel | undefined,
  problems: Problem[],
): Prefix | undefined => {
  if (text === undefined) return undefined;
  const locator = readCanonical(text, L2_LOCATOR_BITS);
  if (locator && site?.locatorBlock && containsPrefix(site.locatorBlock, locator)) return locator;
  const block = site?.locatorBlock ? formatPrefix(site.locatorBlock) : 'none';
  problems.push({
    reason: locator ? 'LocatorOutsideSite' : 'InvalidLocator',
    message: `node ${name} l2Locator: "${text.slice(0, LONGEST_SHOWN)}" must be a canonical IPv6 /${L2_LOCATOR_BITS} inside the l2LocatorBlock of its Site ${site?.name ?? '(none)'} (${block}): frames of stretched L2 do not reach the node; ${ALLOCATED}`,
  });
  return undefined;
};
