/** Fixed-size binary layout of a value. `view` may be longer; only `size` bytes from `offset` are touched. */
export interface Codec<T> {
  readonly size: number;
  /** @throws RangeError naming the field and the valid input, before anything is written */
  write(value: T, view: DataView, offset: number): void;
  read(view: DataView, offset: number): T;
}

/** The bytes of one value. */
export const encode = <T>(codec: Codec<T>, value: T): Uint8Array => {
  const bytes = new Uint8Array(codec.size);
  codec.write(value, new DataView(bytes.buffer), 0);
  return bytes;
};

/** @throws RangeError when there are not exactly `size` bytes */
export const decode = <T>(codec: Codec<T>, bytes: Uint8Array): T => {
  if (bytes.length !== codec.size) throw new RangeError(`${bytes.length} bytes given, the layout has ${codec.size}`);
  return codec.read(new DataView(bytes.buffer, bytes.byteOffset, bytes.length), 0);
};
