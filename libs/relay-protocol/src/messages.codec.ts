import { encodeFrame, FRAME, FrameError, HEADER_BYTES, KEY_BYTES, LENGTH_BYTES, lengthAt } from './frame.ts';

/** Document 002's messages; `unknown` is any other type, whose frames are to be ignored. */
export type Message =
  | { readonly kind: 'register'; readonly key: Uint8Array }
  /** To a relay `key` is the destination's, from it the sender's. The payload may be empty. */
  | { readonly kind: 'data'; readonly key: Uint8Array; readonly payload: Uint8Array }
  /** Has no body; one that comes with it is ignored. */
  | { readonly kind: 'keepalive' }
  | { readonly kind: 'error'; readonly text: string }
  | { readonly kind: 'unknown'; readonly type: number; readonly body: Uint8Array };

const needKey = (key: Uint8Array): Uint8Array => {
  if (key.length !== KEY_BYTES) throw new FrameError(`key has ${key.length} bytes: a WireGuard key has ${KEY_BYTES}`);
  return key;
};

export const encodeRegister = (key: Uint8Array): Uint8Array => encodeFrame(FRAME.register, needKey(key));
export const encodeData = (key: Uint8Array, payload: Uint8Array): Uint8Array =>
  encodeFrame(FRAME.data, needKey(key), payload);
export const encodeKeepalive = (): Uint8Array => encodeFrame(FRAME.keepalive);
export const encodeError = (text: string): Uint8Array => encodeFrame(FRAME.error, new TextEncoder().encode(text));

/** Type and body of one whole frame, as views. @throws FrameError when the bytes are not exactly one frame */
export const openFrame = (frame: Uint8Array): { readonly type: number; readonly body: Uint8Array } => {
  if (frame.length < HEADER_BYTES || lengthAt(frame, 0) !== frame.length - LENGTH_BYTES)
    throw new FrameError(`${frame.length} bytes are not one whole frame`);
  return { type: frame[LENGTH_BYTES]!, body: frame.subarray(HEADER_BYTES) };
};

/** Keys, payloads and bodies of the result are views of the frame. @throws FrameError */
export const decodeMessage = (frame: Uint8Array): Message => {
  const { type, body } = openFrame(frame);
  switch (type) {
    case FRAME.register:
      if (body.length !== KEY_BYTES)
        throw new FrameError(`Register has a body of ${body.length} bytes: a key of ${KEY_BYTES} is right`);
      return { kind: 'register', key: body };
    case FRAME.data:
      if (body.length < KEY_BYTES)
        throw new FrameError(`Data has a body of ${body.length} bytes: it begins with a key of ${KEY_BYTES}`);
      return { kind: 'data', key: body.subarray(0, KEY_BYTES), payload: body.subarray(KEY_BYTES) };
    case FRAME.keepalive:
      return { kind: 'keepalive' };
    case FRAME.error:
      return { kind: 'error', text: new TextDecoder().decode(body) };
    default:
      return { kind: 'unknown', type, body };
  }
};
