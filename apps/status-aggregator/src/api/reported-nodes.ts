import type { NodeReports } from '../intake.port.ts';
import { isNodeName } from '../reports/node-name.ts';
import { Refusal } from './refusal.ts';
import { reportedJson } from './reported-node.ts';

/** So many names, of the longest, are a line of a request that any proxy takes. */
export const MOST_NAMES = 20;
/** Of an answer: as of one report, which is never larger. */
const MOST_BYTES = 4 * 1024 * 1024;

/** Names of a query, in its order, each once. @throws Refusal 400 unless they are 1 to {@link MOST_NAMES} names of Nodes */
export const namesOf = (query: unknown): string[] => {
  const names = typeof query === 'string' ? query.split(',', MOST_NAMES + 1) : [];
  if (names.length > 0 && names.length <= MOST_NAMES && names.every(isNodeName)) return [...new Set(names)];
  throw new Refusal({
    status: 400,
    reason: 'InvalidName',
    message: `names: 1 to ${MOST_NAMES} names of Nodes (RFC 1123 subdomains), separated by commas`,
  });
};

const answerOf = (members: readonly string[], left: readonly string[]): Buffer =>
  Buffer.from(`{"nodes":{${members.join(',')}},"left":${JSON.stringify(left)}}`);

/**
 * `{"nodes": {NAME: {"report", "ageMs"}}, "left": [NAME]}`. A name that stands in neither has not reported; those that are left are to be
 * asked for anew: the answer is large enough. At least one name is answered.
 */
export const reportedNodes = (reports: NodeReports, names: readonly string[], mostBytes = MOST_BYTES): Buffer => {
  const members: string[] = [];
  let bytes = 0;
  for (const [index, name] of names.entries()) {
    const found = reports.report(name);
    if (found === undefined) continue;
    const member = `${JSON.stringify(name)}:${reportedJson(found)}`;
    bytes += Buffer.byteLength(member);
    if (bytes > mostBytes && members.length > 0) return answerOf(members, names.slice(index));
    members.push(member);
  }
  return answerOf(members, []);
};
