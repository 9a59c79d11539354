import type { ClusterView } from '@unbounded/status';
import type { ViewUpdate } from '../intake.port.ts';
import { parsePosition, type Position, positionText } from '../view/position.ts';
import { unpackJson } from './bounded-gzip.ts';
import type { RedisKeys } from './keys.ts';
import type { RedisLink } from './redis-link.ts';
import type { SkipReason } from './redis-metrics.ts';
import { MOST_PACKED_VIEW_BYTES, MOST_VIEW_BYTES, MOST_VIEW_ENTRIES } from './redis.limits.ts';
import { isClusterView } from './relayed-view.ts';
import { listOf, type ReportStore, textOf } from './report-store.ts';
import { APPEND, LEASE, RELEASE, TIP } from './scripts.ts';
import { parseViewEntry } from './view-entry.codec.ts';

/** What a composer appends. */
interface Composed {
  /** By which it holds the lease. */
  readonly token: string;
  readonly serverId: string;
  readonly before: Position | undefined;
  readonly after: Position;
  readonly packedView: Buffer;
  /** Empty: it begins a history. */
  readonly packedPatch: Buffer;
}

export interface Tip {
  readonly reportsId: string;
  /** Of the last entry of reports. */
  readonly order: number;
  readonly viewId: string;
  /** Undefined: there is none, or it is damaged. */
  readonly snapshot: { readonly position: Position; readonly view: ClusterView } | undefined;
  /** Of the server at which the snapshot was written: another one may lack the last updates, or have others in their place. */
  readonly snapshotServerId: string;
}

export interface ViewStore {
  /** Takes the lease where it is free, and renews it where it is ours. */
  hold(token: string, forMs: number): Promise<boolean>;
  release(token: string): Promise<void>;
  append(composed: Composed): Promise<'ok' | 'lost' | 'behind'>;
  /** Where the streams end now. */
  tip(): Promise<Tip>;
  /** The updates that the stream has. */
  updates(): Promise<readonly ViewUpdate[]>;
}

/** No entry comes after it. */
const LAST_ID = '18446744073709551615-18446744073709551614';

const isFirst = (id: string): boolean => id === '0-0';

export const createViewStore = (
  link: RedisLink,
  keys: RedisKeys,
  { reports, skipped }: { readonly reports: ReportStore; readonly skipped: (reason: SkipReason) => void },
): ViewStore => ({
  hold: async (token, forMs) => (await link.run('compose', LEASE, [keys.lease], [token, `${forMs}`])) === 1,
  release: async (token) => void (await link.run('compose', RELEASE, [keys.lease], [token])),
  async append({ token, serverId, before, after, packedView, packedPatch }) {
    const texts = [token, before === undefined ? '' : positionText(before), serverId, positionText(after)];
    const args = [...texts, packedView, packedPatch, `${MOST_VIEW_ENTRIES}`];
    const result = textOf(await link.run('compose', APPEND, [keys.lease, keys.view, keys.snapshot], args));
    return result === 'ok' || result === 'behind' ? result : 'lost';
  },
  async tip() {
    const names = [keys.reports, keys.count, keys.view, keys.snapshot];
    const reply = listOf(await link.run('load', TIP, names, [`${MOST_PACKED_VIEW_BYTES}`]));
    const [, reportsId, order, viewId, positionOf, server, packed] = reply;
    const position = parsePosition(textOf(positionOf));
    const view = position && Buffer.isBuffer(packed) ? await unpackJson(packed, MOST_VIEW_BYTES) : undefined;
    const isView = isClusterView(view);
    if (!isFirst(textOf(viewId)) && !isView) skipped('view');
    return {
      reportsId: textOf(reportsId),
      order: Number(textOf(order)),
      viewId: textOf(viewId),
      snapshot: position && isView ? { position, view } : undefined,
      snapshotServerId: textOf(server),
    };
  },
  async updates() {
    const updates: ViewUpdate[] = [];
    let after = '0-0';
    // Every page has an entry, or is the last.
    for (let page = 0; page < MOST_VIEW_ENTRIES; page++) {
      const { view } = await reports.follow({ reports: LAST_ID, view: after });
      for (const { fields } of view) {
        const entry = fields && parseViewEntry(fields);
        if (!entry || entry.packed.length === 0) continue;
        const patch = await unpackJson(entry.packed, MOST_VIEW_BYTES);
        if (patch !== undefined) updates.push({ position: positionText(entry.position), patch });
      }
      const last = view.at(-1)?.id;
      if (last === undefined) break;
      after = last;
    }
    return updates;
  },
});
