import { z } from 'zod';
import { applyMergePatch, isJsonObject, type Json, type JsonObject } from './merge-patch.ts';
import { type NodeReport, nodeReport } from './node-report.ts';
import { parse, type Parsed } from './parse.ts';

/**
 * What an agent sends: all of its report, or what changed since a revision. Revisions count within an epoch, which is one process of the
 * agent. The documents stay as they came, so that a delta finds members that only a later version knows.
 */

const document = z.custom<JsonObject>(isJsonObject, { error: 'must be an object' });
const epoch = z.string().min(1).max(64);
const revision = z.number().int().min(1).max(Number.MAX_SAFE_INTEGER);

export const push = z
  .object({ epoch, revision, report: document.optional(), base: revision.optional(), patch: document.optional() })
  .refine(({ report, base, patch }) => (report === undefined) === (base !== undefined && patch !== undefined), {
    error: 'must have either report, or base and patch',
  });

export type Push = z.infer<typeof push>;

/** A report as it is held: the document, and what this version reads in it. */
export interface HeldReport {
  readonly epoch: string;
  readonly revision: number;
  readonly document: JsonObject;
  readonly report: NodeReport;
  /** The document has at most so many characters of JSON. */
  readonly size: number;
}

/** Characters of JSON: more than a gateway of 5,000 peers needs. A node could otherwise let its report grow by deltas without end. */
const LARGEST_REPORT = 4 * 1024 * 1024;

export const parsePush = (input: unknown): Parsed<Push> => parse(push, input);

const sizeOf = (document: JsonObject): number => JSON.stringify(document).length;

const documentOf = (
  held: HeldReport | undefined,
  { epoch, base, report, patch }: Push,
): Pick<HeldReport, 'document' | 'size'> | undefined => {
  if (report) return { document: report, size: sizeOf(report) };
  if (held?.epoch !== epoch || held.revision !== base) return undefined;
  const changed = applyMergePatch(held.document, patch!) as JsonObject;
  // Counted whole only where the sum of the deltas gives reason to.
  const atMost = held.size + sizeOf(patch!);
  return { document: changed, size: atMost > LARGEST_REPORT ? sizeOf(changed) : atMost };
};

type Document = HeldReport['document'];

const groupsOf = ({ connectivity }: Document): Json | undefined =>
  isJsonObject(connectivity) ? connectivity['groups'] : undefined;

/** Groups are most of a report and seldom change: those that are the same object as before have been read before, and stay the same. */
const readReport = (document: Document, held: HeldReport | undefined): Parsed<NodeReport> => {
  const groups = groupsOf(document);
  const known = held?.report.connectivity?.groups;
  if (!known || groups === undefined || groups !== groupsOf(held.document)) return parse(nodeReport, document);
  const others = { ...document, connectivity: { ...(document['connectivity'] as JsonObject), groups: {} } };
  const read = parse(nodeReport, others);
  return read.ok && read.value.connectivity
    ? { ok: true, value: { ...read.value, connectivity: { ...read.value.connectivity, groups: known } } }
    : read;
};

/**
 * The report after a push. resync: the push is a delta from a report that is not held.
 * @returns an error that names field, value and what is valid; what is held stays
 */
export const acceptPush = (held: HeldReport | undefined, push: Push): Parsed<HeldReport | 'resync'> => {
  const changed = documentOf(held, push);
  if (!changed) return { ok: true, value: 'resync' };
  if (changed.size > LARGEST_REPORT)
    return { ok: false, error: `the report: ${changed.size} characters: must have at most ${LARGEST_REPORT}` };
  const read = readReport(changed.document, held);
  if (!read.ok) return read;
  return { ok: true, value: { epoch: push.epoch, revision: push.revision, ...changed, report: read.value } };
};
