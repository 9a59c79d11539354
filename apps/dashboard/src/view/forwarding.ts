import type { Forwarding, ForwardingEntry, ForwardingWay } from '@unbounded/status';
import { hasWords } from './problems.ts';

/** What a node forwards by, for people. */

export interface ForwardingRow extends ForwardingEntry {
  /** Of one table alone a key is no name. */
  readonly id: string;
}

export const forwardingRows = ({ entries }: Forwarding): ForwardingRow[] =>
  entries.map((entry, at) => ({ ...entry, id: `${entry.table}/${entry.key}/${at}` }));

/** `GENEVE by geneve0 via 192.0.2.7, MTU 1280` */
const wayText = ({ kind, device, via, group, mtuBytes }: ForwardingWay): string => {
  const words = [
    kind,
    group === undefined ? undefined : `group ${group}`,
    device === undefined ? undefined : `by ${device}`,
    via === undefined ? undefined : `via ${via}`,
  ].filter((word) => word !== undefined);
  const path = words.length === 0 ? 'as the kernel finds' : words.join(' ');
  return mtuBytes === undefined ? path : `${path}, MTU ${mtuBytes}`;
};

/** @param ways absent: no entry at all */
export const waysText = (ways: readonly ForwardingWay[] | undefined): string => {
  if (ways === undefined) return 'nothing';
  return ways.length === 0 ? 'nobody who carries' : ways.map(wayText).join('; ');
};

/** How urgent: what should be there and is not comes first. */
const URGENCY: readonly ForwardingEntry['state'][] = ['Missing', 'Different', 'Unwanted', 'Unknown', 'InSync'];
export const urgencyOfEntry = (state: ForwardingEntry['state']): number => URGENCY.indexOf(state);

export const filterForwarding = (
  rows: readonly ForwardingRow[],
  { entries, differ }: { readonly entries?: string | undefined; readonly differ?: string | undefined },
): readonly ForwardingRow[] =>
  rows.filter(
    ({ table, key, state, wanted, present }) =>
      (differ !== 'yes' || state !== 'InSync') && hasWords(entries, [table, key, waysText(wanted), waysText(present)]),
  );
