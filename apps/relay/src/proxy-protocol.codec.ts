/**
 * The PROXY protocol, version 2 (https://www.haproxy.org/download/1.8/doc/proxy-protocol.txt, section 2.2): what a load
 * balancer says before a connection's own bytes, so that limits hold for the client's address and not for the balancer's.
 *
 *     12 B signature | u8 version 2 and command | u8 family and transport | u16be length | addresses, TLVs
 */
const SIGNATURE = Uint8Array.of(0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a);
const FIXED_BYTES = 16;
/** Addresses and TLVs of balancers are far shorter. */
const MAX_REST_BYTES = 2048;
export const MAX_PROXY_HEADER_BYTES = FIXED_BYTES + MAX_REST_BYTES;

export type ProxyHeader =
  /** More bytes are needed. */
  | { readonly kind: 'partial' }
  | { readonly kind: 'malformed'; readonly reason: string }
  /** `source` is undefined for connections of the balancer itself (its health checks). */
  | { readonly kind: 'header'; readonly bytes: number; readonly source: string | undefined };

const malformed = (reason: string): ProxyHeader => ({ kind: 'malformed', reason });

const ipv4 = (bytes: Uint8Array): string => bytes.subarray(0, 4).join('.');
const ipv6 = (bytes: Uint8Array): string => {
  const view = new DataView(bytes.buffer, bytes.byteOffset, 16);
  return Array.from({ length: 8 }, (_, index) => view.getUint16(2 * index).toString(16)).join(':');
};

/** Never throws. */
export const decodeProxyHeader = (bytes: Uint8Array): ProxyHeader => {
  const known = Math.min(bytes.length, SIGNATURE.length);
  for (let index = 0; index < known; index++)
    if (bytes[index] !== SIGNATURE[index]) return malformed('no signature of the PROXY protocol, version 2');
  if (bytes.length < FIXED_BYTES) return { kind: 'partial' };
  const [versionAndCommand, family] = [bytes[12]!, bytes[13]!];
  const rest = (bytes[14]! << 8) | bytes[15]!;
  if (versionAndCommand >> 4 !== 2) return malformed(`version ${versionAndCommand >> 4}: 2 is right`);
  if (rest > MAX_REST_BYTES) return malformed(`length ${rest}: at most ${MAX_REST_BYTES} is taken`);
  if (bytes.length < FIXED_BYTES + rest) return { kind: 'partial' };
  const header = (source: string | undefined): ProxyHeader => ({ kind: 'header', bytes: FIXED_BYTES + rest, source });
  const command = versionAndCommand & 15;
  if (command === 0) return header(undefined);
  if (command !== 1) return malformed(`command ${command}: LOCAL (0) and PROXY (1) are known`);
  if (family === 0x11 && rest >= 12) return header(ipv4(bytes.subarray(FIXED_BYTES)));
  if (family === 0x21 && rest >= 36) return header(ipv6(bytes.subarray(FIXED_BYTES)));
  return malformed(`family and transport 0x${family.toString(16)} with ${rest} bytes: TCP over IPv4 or IPv6 is right`);
};
