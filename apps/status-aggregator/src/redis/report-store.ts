import { epochJson, fieldsOf, type HeldValue, parseHeldValue } from './report-entry.codec.ts';
import type { RedisKeys } from './keys.ts';
import type { Reply } from './redis-client.ts';
import type { RedisLink } from './redis-link.ts';
import type { SkipReason } from './redis-metrics.ts';
import {
  MOST_ENTRY_BYTES,
  MOST_PACKED_PATCH_BYTES,
  MOST_PACKED_REPORT_BYTES,
  MOST_REPORT_ENTRIES,
  PAGE_BYTES,
  PAGE_ENTRIES,
} from './redis.limits.ts';
import { FOLLOW, FORGET, ONE, PAGE, PUBLISH } from './scripts.ts';

/** Reports and the entries of both streams in Redis: calls of scripts, and their answers. */

interface Publication {
  readonly node: string;
  readonly epoch: string;
  readonly revision: number;
  /** Of a delta. */
  readonly base: number | undefined;
  /** The whole report after it, compressed. */
  readonly document: Buffer;
  /** What followers apply, compressed. */
  readonly change: Buffer;
  readonly ageMs: number;
  readonly mode: 'push' | 'restore';
}

interface StreamEntry {
  readonly id: string;
  /** Undefined: it is too large for one of ours. */
  readonly fields: ReadonlyMap<string, Buffer> | undefined;
}

interface Read {
  readonly nowMs: number;
  readonly value: HeldValue | undefined;
}

interface HeldPage {
  readonly nowMs: number;
  /** alone: it does not fit in the page, and is to be asked for by `one`. */
  readonly values: readonly (readonly [node: string, value: HeldValue | 'alone'])[];
}

export interface ReportStore {
  publish(publication: Publication): Promise<{ readonly order: number } | 'resync' | 'known'>;
  one(node: string): Promise<Read>;
  /** All that is held, a page at a time; what is damaged is passed over. */
  pages(): AsyncIterable<HeldPage>;
  follow(after: { readonly reports: string; readonly view: string }): Promise<{
    readonly nowMs: number;
    readonly reports: readonly StreamEntry[];
    readonly view: readonly StreamEntry[];
  }>;
  forget(nodes: readonly string[]): Promise<void>;
}

export const listOf = (reply: Reply | undefined): readonly Reply[] =>
  Array.isArray(reply) ? (reply as readonly Reply[]) : [];
export const textOf = (reply: Reply | undefined): string => (Buffer.isBuffer(reply) ? reply.toString() : '');

const streamEntries = (reply: Reply | undefined): StreamEntry[] =>
  listOf(reply).map((entry) => {
    const [id, fields] = listOf(entry);
    return { id: textOf(id), fields: fields === undefined ? undefined : fieldsOf(listOf(fields) as readonly Buffer[]) };
  });

/** HDEL of so many at once. */
const FORGET_AT_ONCE = 100;
/** Of a scan that never ends. */
const MOST_PAGES = 10_000;

const pagesOf = async function* (
  link: RedisLink,
  keys: RedisKeys,
  skipped: (reason: SkipReason) => void,
): AsyncIterable<HeldPage> {
  let cursor = '0';
  for (let page = 0; page < MOST_PAGES; page++) {
    const reply = await link.run('load', PAGE, [keys.held], [cursor, `${MOST_PACKED_REPORT_BYTES}`, `${PAGE_BYTES}`]);
    const [next, now, ...items] = listOf(reply);
    const found: [string, HeldValue | 'alone'][] = [];
    for (let at = 0; at + 1 < items.length; at += 2) {
      const [node, raw] = [textOf(items[at]), items[at + 1]];
      const value = raw === 1 ? 'alone' : Buffer.isBuffer(raw) ? parseHeldValue(raw) : undefined;
      if (value) found.push([node, value]);
      else skipped('report');
    }
    yield { nowMs: Number(textOf(now)), values: found };
    cursor = textOf(next);
    if (cursor === '0' || cursor === '') return;
  }
};

export const createReportStore = (
  link: RedisLink,
  keys: RedisKeys,
  skipped: (reason: SkipReason) => void,
): ReportStore => ({
  async publish({ node, epoch, revision, base, document, change, ageMs, mode }) {
    const inline = change.length > MOST_ENTRY_BYTES ? Buffer.alloc(0) : change;
    const [result, order] = listOf(
      await link.run(
        'publish',
        PUBLISH,
        [keys.held, keys.reports, keys.count],
        [
          ...[node, epochJson(epoch), `${revision}`, base === undefined ? '' : `${base}`, document, inline],
          ...[`${Math.max(0, Math.round(ageMs))}`, mode, `${MOST_REPORT_ENTRIES}`],
        ],
      ),
    );
    const word = textOf(result);
    return word === 'ok' ? { order: Number(textOf(order)) } : word === 'known' ? 'known' : 'resync';
  },
  async one(node) {
    const reply = await link.run('read', ONE, [keys.held], [node, `${MOST_PACKED_REPORT_BYTES}`]);
    const [now, raw] = listOf(reply);
    const value = Buffer.isBuffer(raw) ? parseHeldValue(raw) : undefined;
    if (raw !== undefined && raw !== null && !value) skipped('report');
    return { nowMs: Number(textOf(now)), value };
  },
  pages: () => pagesOf(link, keys, skipped),
  async follow(after) {
    const bounds = [PAGE_ENTRIES, PAGE_BYTES, MOST_ENTRY_BYTES + 1024, MOST_PACKED_PATCH_BYTES + 1024];
    const args = [after.reports, after.view, ...bounds.map(String)];
    const [now, reports, view] = listOf(await link.run('follow', FOLLOW, [keys.reports, keys.view], args));
    return { nowMs: Number(textOf(now)), reports: streamEntries(reports), view: streamEntries(view) };
  },
  async forget(nodes) {
    for (let at = 0; at < nodes.length; at += FORGET_AT_ONCE)
      await link.run('forget', FORGET, [keys.held], nodes.slice(at, at + FORGET_AT_ONCE));
  },
});
