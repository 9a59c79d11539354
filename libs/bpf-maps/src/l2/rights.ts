/** What an endpoint may send besides what is its own: flags of its port, and of its FDB entry at all nodes (bpf/include/l2_maps.h). */
export interface L2Rights {
  /** May send DHCP replies, router advertisements and redirects. */
  readonly trusted?: boolean;
  /** A router: brings IP packets of others under its own MAC. */
  readonly forwards?: boolean;
}

export const L2_PORT_FLAGS = { trusted: 0x01, forwards: 0x02, learn: 0x04 } as const;

export const rightsBits = ({ trusted, forwards }: L2Rights): number =>
  (trusted ? L2_PORT_FLAGS.trusted : 0) | (forwards ? L2_PORT_FLAGS.forwards : 0);

export const readRights = (flags: number): L2Rights => ({
  ...(flags & L2_PORT_FLAGS.trusted ? { trusted: true } : {}),
  ...(flags & L2_PORT_FLAGS.forwards ? { forwards: true } : {}),
});
