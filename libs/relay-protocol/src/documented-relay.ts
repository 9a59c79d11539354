import { FRAME, HEADER_BYTES, KEY_BYTES, LENGTH_BYTES } from './frame.ts';
import { FrameParser } from './frame-parser.ts';

/** One end of a connection, as the relay below needs it. */
export interface DocumentedConnection {
  send(bytes: Uint8Array): void;
  close(): void;
}

/** What the relay is told of a connection. */
export interface DocumentedSession {
  /** Bytes have come. */
  onBytes(bytes: Uint8Array): void;
  /** The connection has ended. */
  onEnd(): void;
}

/**
 * A relay that knows what document 002 says and no more: the newest connection has a key, unknown types are ignored, nothing
 * is answered. For tests of clients, which must work with it; over whatever connections the test has.
 */
export class DocumentedRelay {
  readonly #byKey = new Map<string, DocumentedConnection>();

  get registered(): number {
    return this.#byKey.size;
  }

  connect(connection: DocumentedConnection): DocumentedSession {
    const parser = new FrameParser();
    let key: Uint8Array | undefined;
    const register = (frame: Uint8Array): void => {
      if (frame[LENGTH_BYTES] !== FRAME.register || frame.length !== HEADER_BYTES + KEY_BYTES)
        return connection.close();
      key = frame.slice(HEADER_BYTES);
      const before = this.#byKey.get(String(key));
      this.#byKey.set(String(key), connection);
      before?.close();
    };
    const onFrame = (frame: Uint8Array): void => {
      if (key === undefined) return register(frame);
      if (frame[LENGTH_BYTES] !== FRAME.data || frame.length < HEADER_BYTES + KEY_BYTES) return;
      const destination = this.#byKey.get(String(frame.subarray(HEADER_BYTES, HEADER_BYTES + KEY_BYTES)));
      frame.set(key, HEADER_BYTES);
      destination?.send(frame);
    };
    return {
      onBytes: (bytes) => {
        try {
          parser.push(bytes, (all, start, end) => onFrame(new Uint8Array(all.subarray(start, end))));
        } catch {
          connection.close(); // an illegal length
        }
      },
      onEnd: () => {
        if (key !== undefined && this.#byKey.get(String(key)) === connection) this.#byKey.delete(String(key));
      },
    };
  }
}
