import { isNodeName } from '../reports/node-name.ts';

/** What of reports lies in Redis: entries of the stream and values of the hash. Nothing of it is trusted. */

interface Described {
  readonly epoch: string;
  readonly revision: number;
  /** Milliseconds since 1970 by the clock of Redis. */
  readonly receivedMs: number;
  /** Grows from write to write: of two states of a node the one with more is the later. */
  readonly order: number;
}

export interface ReportEntry extends Described {
  readonly node: string;
  /** Undefined: it is a whole report. */
  readonly base: number | undefined;
  /** Report or patch, compressed; empty: it is in the hash alone. */
  readonly packed: Buffer;
}

export interface HeldValue extends Described {
  readonly packed: Buffer;
}

/** Date ends there (ECMA-262 21.4.1.1). */
const LAST_DATE_MS = 8.64e15;
const LONGEST_EPOCH_JSON = 400;

const wholeOf = (text: string | undefined, most: number = Number.MAX_SAFE_INTEGER): number | undefined => {
  if (text === undefined || !/^\d{1,16}$/.test(text)) return undefined;
  const value = Number(text);
  return value <= most ? value : undefined;
};

const epochOf = (json: string | undefined): string | undefined => {
  if (json === undefined || json.length > LONGEST_EPOCH_JSON) return undefined;
  try {
    const value: unknown = JSON.parse(json);
    return typeof value === 'string' && value !== '' ? value : undefined;
  } catch {
    return undefined;
  }
};

/** JSON has no line break, which ends it in the head of a value. */
export const epochJson = (epoch: string): string => JSON.stringify(epoch);

const described = (texts: {
  readonly [K in 'epoch' | 'revision' | 'received' | 'order']: string | undefined;
}): Described | undefined => {
  const epoch = epochOf(texts.epoch);
  const revision = wholeOf(texts.revision);
  const receivedMs = wholeOf(texts.received, LAST_DATE_MS);
  const order = wholeOf(texts.order);
  if (epoch === undefined || revision === undefined || receivedMs === undefined || order === undefined)
    return undefined;
  return { epoch, revision, receivedMs, order };
};

/** @param fields names and values by turns */
export const fieldsOf = (fields: readonly Buffer[]): ReadonlyMap<string, Buffer> => {
  const byName = new Map<string, Buffer>();
  for (let at = 0; at + 1 < fields.length; at += 2) byName.set(fields[at]!.toString(), fields[at + 1]!);
  return byName;
};

/** Undefined: it is none of ours, or damaged. */
export const parseReportEntry = (fields: ReadonlyMap<string, Buffer>): ReportEntry | undefined => {
  const text = (name: string): string | undefined => fields.get(name)?.toString();
  const head = described({ epoch: text('e'), revision: text('r'), received: text('t'), order: text('q') });
  const [node, baseText, packed] = [text('n'), text('b'), fields.get('d')];
  const base = baseText === '' ? undefined : wholeOf(baseText);
  if (!head || node === undefined || !isNodeName(node) || packed === undefined) return undefined;
  if (baseText !== '' && base === undefined) return undefined;
  return { ...head, node, base, packed };
};

const HEAD_LINES = 5;
const LONGEST_HEAD_BYTES = 512;

/** Undefined: it is none of ours, or damaged. */
export const parseHeldValue = (value: Buffer): HeldValue | undefined => {
  const lines: string[] = [];
  let begin = 0;
  while (lines.length < HEAD_LINES) {
    const end = value.indexOf(10, begin);
    if (end < 0 || end > LONGEST_HEAD_BYTES) return undefined;
    lines.push(value.toString('utf8', begin, end));
    begin = end + 1;
  }
  const [version, order, received, epoch, revision] = lines;
  const head = version === 'v1' ? described({ order, received, epoch, revision }) : undefined;
  return head && { ...head, packed: value.subarray(begin) };
};
