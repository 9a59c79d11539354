import { promisify } from 'node:util';
import { gzip } from 'node:zlib';

import type { ViewStream, ViewUpdate } from '../intake.port.ts';

const compress = promisify(gzip);

/** The view at one position, as it goes to clients. */
interface SerializedView {
  readonly position: string;
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
}

const serialize = (position: string, view: unknown): SerializedView => {
  let compressed: Promise<Buffer> | undefined;
  let message: Buffer | undefined;
  const json = Buffer.from(JSON.stringify({ position, view }));
  return {
    position,
    json,
    gzip: () => (compressed ??= compress(json)),
    get message() {
      return (message ??= Buffer.concat([Buffer.from('{"type":"view",'), json.subarray(1)]));
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
      if (last?.position !== current.position) last = serialize(current.position, current.view);
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
  };
};
