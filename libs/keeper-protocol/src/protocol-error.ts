import { z } from 'zod';

/** A file, or a value for one, that the protocol does not allow. The message names field, value and what is valid. */
export class KeeperProtocolError extends Error {
  override readonly name = 'KeeperProtocolError';
}

const LONGEST_VALUE = 50;
const LONGEST_FIELD = 120;
const MOST_ISSUES = 5;

/** Bounded, and never recursive: the value may be nested deeper than a stack is. */
const shown = (value: unknown): string => {
  if (value === undefined) return 'is absent';
  if (Array.isArray(value)) return `(an array of ${value.length})`;
  if (typeof value === 'object' && value !== null) return '(an object)';
  return JSON.stringify(typeof value === 'string' ? value.slice(0, LONGEST_VALUE) : value);
};

const valueAt = (value: unknown, path: readonly PropertyKey[]): unknown => {
  let found: unknown = value;
  for (const key of path) {
    if (typeof found !== 'object' || found === null || !Object.hasOwn(found, key)) return undefined;
    found = (found as Record<PropertyKey, unknown>)[key];
  }
  return found;
};

/** A line for each of the first issues of a value that a schema does not allow. */
export const describeIssues = (value: unknown, { issues }: z.ZodError): string => {
  const lines = issues.slice(0, MOST_ISSUES).map(({ path, message }) => {
    const field = path.length === 0 ? 'the whole' : z.core.toDotPath(path).slice(0, LONGEST_FIELD);
    return `${field} ${shown(valueAt(value, path))}: ${message.slice(0, 400)}`;
  });
  const rest = issues.length - lines.length;
  return [...lines, ...(rest > 0 ? [`and ${rest} more`] : [])].join('; ');
};
