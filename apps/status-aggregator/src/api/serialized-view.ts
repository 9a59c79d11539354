import { promisify } from 'node:util';
import { gzip } from 'node:zlib';

import type { ViewStream, ViewUpdate } from '../intake.port.ts';

const compress = promisify(gzip);

/** The view at one position, as it goes to clients. */
interface SerializedView {
  readonly position: string;
  /** Of `json`: another one has other content. */
  readonly version: string;
  readonly json: Buffer;
  /** Of `json`; compressed when somebody asks for the first time. */
  gzip(): Promise<Buffer>;
  /** The first message of a stream. */
  readonly message: Buffer;
}

export interface Serializer {
  /** Undefined: nothing has been composed yet. */
  view(): SerializedView | undefined;
  update(update: ViewUpdate): Buffer;
  /** What hinders the aggregator; empty: nothing any more. */
  notices(notices: readonly string[]): Buffer;
}

const versionOf = (position: string, notices: readonly string[]): string => [position, ...notices].join('\n');

const serialize = (position: string, view: unknown, notices: readonly string[]): SerializedView => {
  let compressed: Promise<Buffer> | undefined;
  let message: Buffer | undefined;
  const plain = Buffer.from(JSON.stringify({ position, view }));
  const json = notices.length === 0 ? plain : Buffer.from(JSON.stringify({ position, view, notices }));
  return {
    position,
    version: versionOf(position, notices),
    json,
    gzip: () => (compressed ??= compress(json)),
    get message() {
      return (message ??= Buffer.concat([Buffer.from('{"type":"view",'), plain.subarray(1)]));
    },
  };
};

/** Serializes the view and each update once, however many clients ask. */
export const createSerializer = (stream: ViewStream): Serializer => {
  let last: SerializedView | undefined;
  const updates = new WeakMap<ViewUpdate, Buffer>();
  return {
    view: () => {
      const current = stream.current();
      if (current === undefined) return undefined;
      const notices = stream.notices?.() ?? [];
      if (last?.version !== versionOf(current.position, notices))
        last = serialize(current.position, current.view, notices);
      return last;
    },
    update: (update) => {
      const known = updates.get(update);
      if (known) return known;
      const { position, patch } = update;
      const message = Buffer.from(JSON.stringify({ type: 'update', position, patch }));
      updates.set(update, message);
      return message;
    },
    notices: (notices) => Buffer.from(JSON.stringify({ type: 'notices', notices })),
  };
};
