import type { TailnetDevice } from '@unbounded/crds';

/**
 * Whether the list of devices is of another tailnet than our records: credentials can be replaced by those of another one, at the
 * same URL. All our devices would look gone at once, every node would log in anew there, and what a removal does not find would
 * count as removed.
 */

/** One device that is gone is no more than that. */
const FEWEST_RECORDS = 2;

const isBound = ({ status }: TailnetDevice): boolean => status?.deviceID !== undefined;

export interface DoubtInput {
  readonly records: readonly TailnetDevice[];
  /** IDs of the devices in the list. */
  readonly listed: { has(id: string): boolean };
  /** It was in doubt before. */
  readonly isDoubted: boolean;
}

/**
 * The bound records, none of which the list knows; empty: it is as it should be. Doubt is not begun by records that are being
 * deleted, whose devices we remove ourselves, and it does not end by them either: their removal waits for it.
 */
export const unknownRecords = ({ records, listed, isDoubted }: DoubtInput): readonly TailnetDevice[] => {
  const bound = records.filter(isBound);
  const counted = isDoubted ? bound : bound.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  if (counted.some(({ status }) => listed.has(status!.deviceID!))) return [];
  return isDoubted || counted.length >= FEWEST_RECORDS ? counted : [];
};

export const doubtText = (count: number, apiURL: string): string =>
  `the list of ${apiURL} has none of the devices that are bound (${count}): the credentials may be those of another tailnet, so no key is ` +
  'given and no device is removed; give the credentials of the tailnet that the devices are in; if they really were all removed there, ' +
  'write status.deviceID of the TailnetDevices into status.goneID (docs/tailnet.md), and they are registered anew';
