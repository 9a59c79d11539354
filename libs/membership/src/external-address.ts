import { annotations } from '@unbounded/crds';
import { type Address, formatAddress, parseAddress, specialRangeOf } from '@unbounded/ip';

import { type NodeProblem, quote } from './node-problem.ts';

/** What the annotation `external-address` of a Node says: at least one of either. */
export interface ExternalAddresses {
  /** Canonical, in the order of the annotation. */
  readonly addresses: readonly string[];
  /** DNS names in lower case, without a final dot. */
  readonly names: readonly string[];
}

const LONGEST_TEXT = 1024;
const MOST_ENTRIES = 8;
const LONGEST_NAME = 253;
/** RFC 1123 2.1; the last label has a letter, so that no malformed IPv4 address is a name. */
const DNS_NAME = /^(?=.*[a-z][a-z0-9-]*$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

export const tryParseAddress = (text: string): Address | undefined => {
  try {
    return parseAddress(text);
  } catch {
    return undefined;
  }
};

const isName = (text: string): boolean => text.length <= LONGEST_NAME && DNS_NAME.test(text);

/** Undefined without the annotation, or when nothing in it is valid. */
export const parseExternalAddresses = (
  text: string | undefined,
  problems: NodeProblem[],
): ExternalAddresses | undefined => {
  if (text === undefined) return undefined;
  const tell = (value: string, why: string): void => {
    const message = `${quote(value)} ${why}: write up to ${MOST_ENTRIES} IP addresses or DNS names, comma-separated, such as "203.0.113.7" or "gw.example.com"`;
    problems.push({
      reason: 'InvalidExternalAddress',
      field: `metadata.annotations[${annotations.externalAddress}]`,
      message,
    });
  };
  if (text.length > LONGEST_TEXT) {
    tell(text, `is longer than ${LONGEST_TEXT} characters`);
    return undefined;
  }
  const entries = [...new Set(text.split(',').map((entry) => entry.trim()))].filter(Boolean);
  if (entries.length === 0) tell(text, 'names no address');
  if (entries.length > MOST_ENTRIES) tell(entries[MOST_ENTRIES]!, `and what follows is more than ${MOST_ENTRIES}`);
  const addresses = new Set<string>();
  const names = new Set<string>();
  for (const entry of entries.slice(0, MOST_ENTRIES)) {
    const address = tryParseAddress(entry);
    const name = entry.toLowerCase().replace(/\.$/, '');
    const special = address && specialRangeOf(address);
    if (special) tell(entry, `is a ${special} address`);
    else if (address) addresses.add(formatAddress(address));
    else if (isName(name)) names.add(name);
    else tell(entry, 'is neither an IP address nor a DNS name');
  }
  return addresses.size + names.size === 0 ? undefined : { addresses: [...addresses], names: [...names] };
};
