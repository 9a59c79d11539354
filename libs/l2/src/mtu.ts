/** Ethernet (14) and IPv6 (40) around a frame: one segment needs no routing header (RFC 8986 5.2, H.Encaps.L2.Red). */
export const SRV6_OVERHEAD_BYTES = 54;

/**
 * What the least of the links between nodes of a network leaves for an IP packet in a frame.
 * @param linkMtus bytes of an IP packet that a link carries
 * @param asked bytes, of the Network's spec
 * @returns undefined where there is neither a link nor a wish
 */
export const networkMtu = (linkMtus: readonly number[], asked?: number): number | undefined => {
  const limits = [...linkMtus.map((mtu) => mtu - SRV6_OVERHEAD_BYTES), ...(asked === undefined ? [] : [asked])];
  return limits.length === 0 ? undefined : Math.min(...limits);
};
