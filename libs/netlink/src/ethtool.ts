import { MessageWriter } from './attribute.codec.ts';
import {
  createGenericSocket,
  type GenericFamily,
  type GenericSocket,
  readGenericAttributes,
} from './generic-socket.ts';
import { NetlinkError } from './netlink-error.ts';

/** Features of devices (`ethtool -K`), by the generic netlink family of linux/ethtool_netlink.h. */

const [GET_FEATURES, SET_FEATURES] = [11, 12];
const VERSION = 1;
const FEATURES = { header: 1, wanted: 3, active: 4 } as const;
const HEADER = { index: 1 } as const;
const BITSET = { bits: 3 } as const;
const BITS = { bit: 1 } as const;
const BIT = { name: 2 } as const;
const EOPNOTSUPP = 95;

/**
 * What a device leaves to somebody further on: to segment a packet, and to write its checksum, for which the sender names a place in
 * the packet that may be any. Newer kernels have more of them.
 */
const LEFT_TO_OTHERS = /^tx-(.*segmentation|checksum-.*)$/;

const ofLink = (writer: MessageWriter, link: number): MessageWriter =>
  writer.nest(FEATURES.header, (header) => header.attributeU32(HEADER.index, link));

/** Names of the features that are on. @throws NetlinkDecodeError */
const readActive = (body: Uint8Array): string[] =>
  (readGenericAttributes(body).get(FEATURES.active)?.nested().get(BITSET.bits)?.list() ?? []).flatMap(
    (bit) => bit.nested().get(BIT.name)?.text ?? [],
  );

/** A request that turns features off and leaves all others: bits without a value, none of them masked. */
const encodeFeaturesOff = (link: number, features: readonly string[]): Uint8Array =>
  ofLink(new MessageWriter(1024), link)
    .nest(FEATURES.wanted, (wanted) =>
      wanted.nest(BITSET.bits, (bits) => {
        for (const name of features) bits.nest(BITS.bit, (bit) => bit.attributeText(BIT.name, name));
      }),
    )
    .bytes();

export interface Ethtool extends Disposable {
  /** From then on the device sends no packet that is longer than its MTU, or whose checksum is still to be written. @throws NetlinkError */
  turnTransmitOffloadsOff(link: number): Promise<void>;
}

/** @param options the namespace of the devices; default: the process's own */
export const createEthtool = (options: { readonly netnsFd?: number } = {}): Ethtool => {
  const socket: GenericSocket = createGenericSocket(options);
  let family: GenericFamily | undefined;
  return {
    async turnTransmitOffloadsOff(link) {
      family ??= await socket.resolve('ethtool');
      if (!family) throw new NetlinkError(EOPNOTSUPP, 'find generic netlink family ethtool (kernel 5.6)');
      const what = `turn segmentation and checksum offload of link ${link} off`;
      const attributes = ofLink(new MessageWriter(16), link).bytes();
      const [reply] = await socket.request(family, { command: GET_FEATURES, version: VERSION, attributes, what });
      const active = reply ? readActive(reply.body).filter((name) => LEFT_TO_OTHERS.test(name)) : [];
      if (active.length === 0) return;
      await socket.request(family, {
        ...{ command: SET_FEATURES, version: VERSION, attributes: encodeFeaturesOff(link, active), what },
      });
    },
    [Symbol.dispose]: () => socket.close(),
  };
};
