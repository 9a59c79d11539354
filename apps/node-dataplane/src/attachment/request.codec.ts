/**
 * What the CNI binary sends (apps/cni/README.md): two little-endian u32 with the lengths of environment and standard
 * input, the CNI_* variables as NUL-terminated `NAME=value`, a NUL, and the standard input.
 */
export interface CniRequest {
  readonly environment: Readonly<Record<string, string>>;
  readonly config: string;
}

export const LARGEST_REQUEST = 2 << 20;
const HEADER = 8;

/** Undefined: more bytes are to come. @throws RangeError for what can be no request */
export const decodeRequest = (bytes: Uint8Array): CniRequest | undefined => {
  if (bytes.length < HEADER) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const [environmentLength, configLength] = [view.getUint32(0, true), view.getUint32(4, true)];
  const total = HEADER + environmentLength + 1 + configLength;
  if (total > LARGEST_REQUEST)
    throw new RangeError(`a CNI request of ${total} bytes: at most ${LARGEST_REQUEST} are read`);
  if (bytes.length < total) return undefined;
  const decoder = new TextDecoder();
  const environment: Record<string, string> = {};
  for (const pair of decoder.decode(bytes.subarray(HEADER, HEADER + environmentLength)).split('\0')) {
    const at = pair.indexOf('=');
    if (at > 0) environment[pair.slice(0, at)] = pair.slice(at + 1);
  }
  return { environment, config: decoder.decode(bytes.subarray(total - configLength, total)) };
};
