import { macBytes } from '@unbounded/ip';
import type { Attribute, Attributes, MessageWriter } from './attribute.codec.ts';
import { addressBytes, addressText } from './address.codec.ts';
import type {
  BridgeKind,
  CreatableKind,
  GeneveKind,
  IpipKind,
  LinkKind,
  TunKind,
  VethPeer,
  VrfKind,
  VxlanKind,
} from './model/link.ts';

/** IFLA_LINKINFO and what the kinds keep in its IFLA_INFO_DATA (linux/if_link.h, if_tunnel.h, veth.h). */
const INFO = { kind: 1, data: 2 } as const;
const VETH_PEER = 1;
const BRIDGE = { stp: 5, groupForwardMask: 9, multicastSnooping: 23, options: 46 } as const;
const NO_LINK_LOCAL_LEARNING = 1; // BR_BOOLOPT_NO_LL_LEARN is bit 0
const VXLAN = {
  id: 1,
  remote: 2,
  link: 3,
  local: 4,
  ttl: 5,
  learning: 7,
  portRange: 10,
  port: 15,
  remote6: 16,
  local6: 17,
  udpChecksum: 18,
  zeroChecksum6Tx: 19,
  zeroChecksum6Rx: 20,
  external: 25,
} as const;
const GENEVE = {
  id: 1,
  remote: 2,
  ttl: 3,
  port: 5,
  external: 6,
  remote6: 7,
  udpChecksum: 8,
  zeroChecksum6Tx: 9,
  zeroChecksum6Rx: 10,
} as const;
const IPTUN = { link: 1, local: 2, remote: 3, ttl: 4, pathMtuDiscovery: 10, external: 19 } as const;
const VRF_TABLE = 1;
const TUN = { type: 3, packetInfo: 4, vnetHeader: 5, persistent: 6 } as const;
const TAP = 2;

const [IFLA_ADDRESS, IFLA_IFNAME, IFLA_MTU, IFLA_NET_NS_FD] = [1, 3, 4, 28];

const ifDefined = <T>(value: T | undefined, write: (value: T) => void): void => {
  if (value !== undefined) write(value);
};

const writeBoolean = (writer: MessageWriter, type: number, value: boolean | undefined): void =>
  ifDefined(value, (on) => writer.attributeU8(type, on ? 1 : 0));

/** An address under the attribute number of its family. */
const writeAddress = (
  writer: MessageWriter,
  text: string | undefined,
  types: readonly [v4: number, v6: number],
): void =>
  ifDefined(text, (address) => {
    const bytes = addressBytes(address);
    writer.attribute(bytes.length === 4 ? types[0] : types[1], bytes);
  });

const writeBridge = (writer: MessageWriter, spec: BridgeKind): void => {
  ifDefined(spec.stp, (on) => writer.attributeU32(BRIDGE.stp, on ? 1 : 0));
  writeBoolean(writer, BRIDGE.multicastSnooping, spec.multicastSnooping);
  ifDefined(spec.groupForwardMask, (mask) =>
    writer.attribute(BRIDGE.groupForwardMask, Uint8Array.of(mask & 0xff, mask >> 8)),
  );
  // struct br_boolopt_multi: u32 values, u32 mask of those that are given.
  ifDefined(spec.linkLocalLearning, (on) =>
    writer.attribute(
      BRIDGE.options,
      Uint8Array.of(on ? 0 : NO_LINK_LOCAL_LEARNING, 0, 0, 0, NO_LINK_LOCAL_LEARNING, 0, 0, 0),
    ),
  );
};

const writeVxlan = (writer: MessageWriter, spec: VxlanKind): void => {
  if (!spec.external) writer.attributeU32(VXLAN.id, spec.vni ?? 0);
  writeAddress(writer, spec.remote, [VXLAN.remote, VXLAN.remote6]);
  writeAddress(writer, spec.local, [VXLAN.local, VXLAN.local6]);
  ifDefined(spec.underlay, (link) => writer.attributeU32(VXLAN.link, link));
  ifDefined(spec.ttl, (ttl) => writer.attributeU8(VXLAN.ttl, ttl));
  writeBoolean(writer, VXLAN.learning, spec.learning);
  ifDefined(spec.sourcePorts, ({ low, high }) =>
    writer.attribute(VXLAN.portRange, Uint8Array.of(low >> 8, low & 255, high >> 8, high & 255)),
  );
  ifDefined(spec.port, (port) => writer.attributeBe16(VXLAN.port, port));
  writeBoolean(writer, VXLAN.udpChecksum, spec.udpChecksum);
  writeBoolean(writer, VXLAN.zeroChecksum6Tx, spec.udp6ZeroChecksumTx);
  writeBoolean(writer, VXLAN.zeroChecksum6Rx, spec.udp6ZeroChecksumRx);
  if (spec.external) writer.attributeU8(VXLAN.external, 1);
};

const writeGeneve = (writer: MessageWriter, spec: GeneveKind): void => {
  if (!spec.external) writer.attributeU32(GENEVE.id, spec.vni ?? 0);
  writeAddress(writer, spec.remote, [GENEVE.remote, GENEVE.remote6]);
  ifDefined(spec.ttl, (ttl) => writer.attributeU8(GENEVE.ttl, ttl));
  ifDefined(spec.port, (port) => writer.attributeBe16(GENEVE.port, port));
  writeBoolean(writer, GENEVE.udpChecksum, spec.udpChecksum);
  writeBoolean(writer, GENEVE.zeroChecksum6Tx, spec.udp6ZeroChecksumTx);
  writeBoolean(writer, GENEVE.zeroChecksum6Rx, spec.udp6ZeroChecksumRx);
  if (spec.external) writer.flag(GENEVE.external);
};

const writeIpip = (writer: MessageWriter, spec: IpipKind): void => {
  ifDefined(spec.underlay, (link) => writer.attributeU32(IPTUN.link, link));
  ifDefined(spec.local, (local) => writer.attribute(IPTUN.local, addressBytes(local)));
  ifDefined(spec.remote, (remote) => writer.attribute(IPTUN.remote, addressBytes(remote)));
  ifDefined(spec.ttl, (ttl) => writer.attributeU8(IPTUN.ttl, ttl));
  writeBoolean(writer, IPTUN.pathMtuDiscovery, spec.pathMtuDiscovery);
  if (spec.external) writer.flag(IPTUN.external);
};

/** struct ifinfomsg of the peer, then its attributes. */
const writePeer = (writer: MessageWriter, peer: VethPeer): void => {
  writer.zeros(16);
  writer.attributeText(IFLA_IFNAME, peer.name);
  ifDefined(peer.mac, (mac) => writer.attribute(IFLA_ADDRESS, macBytes(mac)));
  ifDefined(peer.mtu, (mtu) => writer.attributeU32(IFLA_MTU, mtu));
  ifDefined(peer.netnsFd, (fd) => writer.attributeU32(IFLA_NET_NS_FD, fd));
};

const writeData = (writer: MessageWriter, spec: CreatableKind): void => {
  switch (spec.kind) {
    case 'bridge':
      writeBridge(writer, spec);
      break;
    case 'veth':
      ifDefined(spec.peer, (peer) => writer.nest(VETH_PEER, () => writePeer(writer, peer), false));
      break;
    case 'vxlan':
      writeVxlan(writer, spec);
      break;
    case 'geneve':
      writeGeneve(writer, spec);
      break;
    case 'ipip':
      writeIpip(writer, spec);
      break;
    case 'vrf':
      writer.attributeU32(VRF_TABLE, spec.table);
      break;
    default: // dummy, ifb and wireguard have nothing to say
  }
};

const WITH_DATA = new Set<LinkKind['kind']>(['veth', 'vxlan', 'geneve', 'ipip', 'vrf']);

/** What goes into IFLA_LINKINFO. */
export const writeLinkKind = (writer: MessageWriter, spec: CreatableKind): void => {
  writer.attributeBareText(INFO.kind, spec.kind);
  const hasData = WITH_DATA.has(spec.kind) || (spec.kind === 'bridge' && Object.keys(spec).length > 1);
  if (hasData) writer.nest(INFO.data, () => writeData(writer, spec), false);
};

type Optional<T> = { -readonly [K in keyof T]?: T[K] | undefined };

/** Drops the fields that are undefined, so that absent means absent. */
const present = <T extends object>(fields: Optional<T>): T =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as T;

const boolean = (attribute: Attribute | undefined): boolean | undefined => (attribute ? attribute.u8 !== 0 : undefined);
const address = (attribute: Attribute | undefined): string | undefined => attribute && addressText(attribute.bytes);
/** The kernel says 0.0.0.0 where no address was given. */
const setAddress = (attribute: Attribute | undefined): string | undefined =>
  attribute?.bytes.some((byte) => byte !== 0) ? addressText(attribute.bytes) : undefined;

const readBridge = (data: Attributes): BridgeKind => {
  const [stp, options] = [data.get(BRIDGE.stp)?.u32, data.get(BRIDGE.options)?.exactly(8)];
  const mask = data.get(BRIDGE.groupForwardMask)?.exactly(2);
  return present<BridgeKind>({
    kind: 'bridge',
    stp: stp === undefined ? undefined : stp !== 0,
    multicastSnooping: boolean(data.get(BRIDGE.multicastSnooping)),
    groupForwardMask: mask && mask[0]! | (mask[1]! << 8),
    linkLocalLearning: options && ((options[0] ?? 0) & NO_LINK_LOCAL_LEARNING) === 0,
  });
};

const readVxlan = (data: Attributes): VxlanKind => {
  const range = data.get(VXLAN.portRange);
  const external = boolean(data.get(VXLAN.external)) ?? false;
  const ports = range && new DataView(range.exactly(4).buffer, range.bytes.byteOffset);
  return present<VxlanKind>({
    kind: 'vxlan',
    external,
    vni: external ? undefined : data.get(VXLAN.id)?.u32,
    remote: address(data.get(VXLAN.remote) ?? data.get(VXLAN.remote6)),
    local: address(data.get(VXLAN.local) ?? data.get(VXLAN.local6)),
    port: data.get(VXLAN.port)?.be16,
    sourcePorts: ports && { low: ports.getUint16(0), high: ports.getUint16(2) },
    learning: boolean(data.get(VXLAN.learning)),
    ttl: data.get(VXLAN.ttl)?.u8,
    udpChecksum: boolean(data.get(VXLAN.udpChecksum)),
    udp6ZeroChecksumTx: boolean(data.get(VXLAN.zeroChecksum6Tx)),
    udp6ZeroChecksumRx: boolean(data.get(VXLAN.zeroChecksum6Rx)),
    underlay: data.get(VXLAN.link)?.u32,
  });
};

const readGeneve = (data: Attributes): GeneveKind => {
  const external = data.has(GENEVE.external);
  return present<GeneveKind>({
    kind: 'geneve',
    external,
    vni: external ? undefined : data.get(GENEVE.id)?.u32,
    remote: setAddress(data.get(GENEVE.remote) ?? data.get(GENEVE.remote6)),
    port: data.get(GENEVE.port)?.be16,
    ttl: data.get(GENEVE.ttl)?.u8,
    udpChecksum: boolean(data.get(GENEVE.udpChecksum)),
    udp6ZeroChecksumTx: boolean(data.get(GENEVE.zeroChecksum6Tx)),
    udp6ZeroChecksumRx: boolean(data.get(GENEVE.zeroChecksum6Rx)),
  });
};

const readIpip = (data: Attributes): IpipKind =>
  present<IpipKind>({
    kind: 'ipip',
    external: data.has(IPTUN.external),
    local: setAddress(data.get(IPTUN.local)),
    remote: setAddress(data.get(IPTUN.remote)),
    ttl: data.get(IPTUN.ttl)?.u8,
    pathMtuDiscovery: boolean(data.get(IPTUN.pathMtuDiscovery)),
    underlay: data.get(IPTUN.link)?.u32 || undefined,
  });

const readTun = (data: Attributes): TunKind => ({
  kind: 'tun',
  mode: data.get(TUN.type)?.u8 === TAP ? 'tap' : 'tun',
  persistent: boolean(data.get(TUN.persistent)) ?? false,
  vnetHeader: boolean(data.get(TUN.vnetHeader)) ?? false,
  packetInfo: boolean(data.get(TUN.packetInfo)) ?? false,
});

const NOTHING: Attributes = new Map();

/** From IFLA_LINKINFO; undefined when it names no kind. @throws NetlinkDecodeError */
export const readLinkKind = (info: Attributes): LinkKind | undefined => {
  const name = info.get(INFO.kind)?.text;
  const data = (): Attributes => info.get(INFO.data)?.nested() ?? NOTHING;
  switch (name) {
    case undefined:
      return undefined;
    case 'bridge':
      return readBridge(data());
    case 'dummy':
    case 'ifb':
    case 'wireguard':
    case 'veth':
      return { kind: name };
    case 'vxlan':
      return readVxlan(data());
    case 'geneve':
      return readGeneve(data());
    case 'ipip':
      return readIpip(data());
    case 'vrf':
      return { kind: 'vrf', table: data().get(VRF_TABLE)?.u32 ?? 0 } satisfies VrfKind;
    case 'tun':
      return readTun(data());
    default:
      return { kind: 'other', name };
  }
};
