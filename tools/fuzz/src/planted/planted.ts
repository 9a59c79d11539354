/** A decoder with a mistake, for the test of the search: `u8 'U' | u8 'B' | u8 count | count numbers of u16`. */
export class PlantedError extends Error {
  override readonly name = 'PlantedError';
}

const isMagic = (bytes: Uint8Array): boolean => {
  if (bytes[0] !== 0x55) return false;
  if (bytes[1] !== 0x42) return false;
  return bytes.length > 2;
};

export const decodePlanted = (bytes: Uint8Array): number[] => {
  if (!isMagic(bytes)) throw new PlantedError('no magic');
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const numbers: number[] = [];
  // The mistake: nobody compares the count with the bytes that there are, beyond a handful.
  const count = bytes[2]!;
  if (count < 3 && bytes.length < 3 + 2 * count) throw new PlantedError('too short');
  for (let index = 0; index < count; index++) numbers.push(view.getUint16(3 + 2 * index));
  return numbers;
};
