import { MessageWriter, readAttributes } from './attribute.codec.ts';
import { addressBytes, addressText, afOf, familyOf, ipFamily, prefixBytes } from './address.codec.ts';
import { NetlinkDecodeError } from './message.codec.ts';
import { type IpFamily, type LinkAddress, ROUTE_SCOPES } from './model/route.ts';
import { scopeName } from './route-scope.codec.ts';

/** RTM_* and IFA_* (linux/if_addr.h). */
export const ADDRESS_MESSAGE = { new: 20, delete: 21, get: 22 } as const;
const IFA = { address: 1, local: 2, label: 3, broadcast: 4, cacheInfo: 6, flags: 8, protocol: 11 } as const;
const FOREVER = 0xffff_ffff;
const DEPRECATED = 0x20; // IFA_F_DEPRECATED
const IFADDRMSG_BYTES = 8;

/** struct ifaddrmsg: u8 family, u8 prefix length, u8 flags, u8 scope, u32 link. */
const header = (
  fields: readonly [family: number, length: number, flags: number, scope: number],
  link: number,
): MessageWriter => new MessageWriter(64).u8(fields[0]).u8(fields[1]).u8(fields[2]).u8(fields[3]).u32(link);

/** The last address of the subnet; iproute2 sets it for `brd +`, the kernel needs it for broadcasts. */
const broadcast = (bytes: Uint8Array, length: number): Uint8Array =>
  Uint8Array.from(bytes, (octet, index) => octet | (0xff >> Math.min(8, Math.max(0, length - index * 8))));

export const encodeAddress = (value: LinkAddress): Uint8Array => {
  const { bytes, length } = prefixBytes(value.address);
  const flags = value.flags ?? 0;
  const writer = header([familyOf(bytes), length, flags & 0xff, ROUTE_SCOPES[value.scope ?? 'global']], value.link);
  writer
    .attribute(IFA.local, bytes)
    .attribute(IFA.address, value.peer === undefined ? bytes : addressBytes(value.peer));
  if (bytes.length === 4 && length < 31 && value.peer === undefined)
    writer.attribute(IFA.broadcast, broadcast(bytes, length));
  if (value.label !== undefined) writer.attributeText(IFA.label, value.label);
  // struct ifa_cacheinfo: preferred and valid lifetime in seconds, created, updated.
  if (value.deprecated) writer.attribute(IFA.cacheInfo, new MessageWriter(16).u32(0).u32(FOREVER).zeros(8).bytes());
  if (value.protocol !== undefined) writer.attributeU8(IFA.protocol, value.protocol);
  if (flags > 0xff) writer.attributeU32(IFA.flags, flags);
  return writer.bytes();
};

export const encodeAddressDump = (filter: { readonly family?: IpFamily; readonly link?: number }): Uint8Array =>
  header([afOf(filter.family), 0, 0, 0], filter.link ?? 0).bytes();

/** One RTM_NEWADDR or RTM_DELADDR. @throws NetlinkDecodeError */
export const decodeAddress = (body: Uint8Array): LinkAddress => {
  if (body.length < IFADDRMSG_BYTES) {
    throw new NetlinkDecodeError(
      `address message of ${body.length} bytes: struct ifaddrmsg alone has ${IFADDRMSG_BYTES}`,
    );
  }
  const view = new DataView(body.buffer, body.byteOffset, body.length);
  ipFamily(view.getUint8(0));
  const attributes = readAttributes(body.subarray(IFADDRMSG_BYTES));
  // Without IFA_LOCAL (IPv6) IFA_ADDRESS is the address itself; with it IFA_ADDRESS is the peer, if it differs.
  const remote = attributes.get(IFA.address) ?? attributes.get(IFA.local);
  if (!remote) throw new NetlinkDecodeError('address message without IFA_ADDRESS and IFA_LOCAL');
  const [local, peer] = [addressText((attributes.get(IFA.local) ?? remote).bytes), addressText(remote.bytes)];
  const [label, protocol] = [attributes.get(IFA.label), attributes.get(IFA.protocol)];
  const flags = attributes.get(IFA.flags)?.u32 ?? view.getUint8(2);
  return {
    link: view.getUint32(4, true),
    address: `${local}/${view.getUint8(1)}`,
    ...(peer !== local && { peer }),
    scope: scopeName(view.getUint8(3)),
    ...(label && { label: label.text }),
    ...((flags & DEPRECATED) !== 0 && { deprecated: true }),
    ...(protocol && { protocol: protocol.u8 }),
    flags,
  };
};
