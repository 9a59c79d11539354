import { MessageWriter, readAttributes } from './attribute.codec.ts';
import { NetlinkDecodeError } from './message.codec.ts';
import type { BpfFilter, Qdisc } from './model/traffic-control.ts';

/** RTM_*, TCA_* (linux/rtnetlink.h) and TCA_BPF_* (linux/pkt_cls.h). */
export const QDISC_MESSAGE = { new: 36, delete: 37, get: 38 } as const;
export const FILTER_MESSAGE = { new: 44, delete: 45, get: 46 } as const;
const TCA = { kind: 1, options: 2 } as const;
const BPF = { name: 7, flags: 8, tag: 10, id: 11 } as const;
const DIRECT_ACTION = 1; // TCA_BPF_FLAG_ACT_DIRECT
const TCMSG_BYTES = 20;
/** TC_H_CLSACT (the same as TC_H_INGRESS), and the classes below it. */
const CLSACT = 0xffff_fff1;
const CLSACT_HANDLE = 0xffff_0000;
const PARENT = { ingress: 0xffff_fff2, egress: 0xffff_fff3 } as const;

/** struct tcmsg: u8 family, 3 pad, i32 link, u32 handle, u32 parent, u32 info. */
const header = (link: number, handle: number, parent: number, info = 0): MessageWriter =>
  new MessageWriter(64).zeros(4).u32(link).u32(handle).u32(parent).u32(info);

export const encodeClsact = (link: number): Uint8Array =>
  header(link, CLSACT_HANDLE, CLSACT).attributeText(TCA.kind, 'clsact').bytes();

/** All links' or one link's, by strict checking only that one's. */
export const encodeQdiscDump = (): Uint8Array => header(0, 0, 0).bytes();

export const encodeFilterDump = (link: number, direction: 'ingress' | 'egress'): Uint8Array =>
  header(link, 0, PARENT[direction]).bytes();

/** Priority in the upper half of info, protocol in network order in the lower. */
export const encodeFilterDelete = (
  filter: Pick<BpfFilter, 'link' | 'direction' | 'priority' | 'protocol' | 'handle'>,
): Uint8Array => {
  const swapped = ((filter.protocol & 0xff) << 8) | (filter.protocol >> 8);
  return header(filter.link, filter.handle, PARENT[filter.direction], ((filter.priority << 16) | swapped) >>> 0)
    .attributeText(TCA.kind, 'bpf')
    .bytes();
};

const readHeader = (body: Uint8Array): DataView => {
  if (body.length < TCMSG_BYTES) {
    throw new NetlinkDecodeError(
      `traffic control message of ${body.length} bytes: struct tcmsg alone has ${TCMSG_BYTES}`,
    );
  }
  return new DataView(body.buffer, body.byteOffset, body.length);
};

/** @throws NetlinkDecodeError */
export const decodeQdisc = (body: Uint8Array): Qdisc => {
  const view = readHeader(body);
  return {
    link: view.getInt32(4, true),
    handle: view.getUint32(8, true),
    parent: view.getUint32(12, true),
    kind: readAttributes(body.subarray(TCMSG_BYTES)).get(TCA.kind)?.text ?? '',
  };
};

/** One filter; undefined for other kinds and for the placeholder that stands for a whole priority. @throws NetlinkDecodeError */
export const decodeFilter = (body: Uint8Array): BpfFilter | undefined => {
  const view = readHeader(body);
  const attributes = readAttributes(body.subarray(TCMSG_BYTES));
  const handle = view.getUint32(8, true);
  const options = attributes.get(TCA.options)?.nested();
  if (attributes.get(TCA.kind)?.text !== 'bpf' || handle === 0 || !options) return undefined;
  const [name, tag, id] = [options.get(BPF.name), options.get(BPF.tag), options.get(BPF.id)];
  return {
    link: view.getInt32(4, true),
    direction: view.getUint32(12, true) === PARENT.egress ? 'egress' : 'ingress',
    priority: view.getUint16(18, true),
    protocol: view.getUint16(16, false),
    handle,
    ...(name && { name: name.text }),
    ...(id && { programId: id.u32 }),
    ...(tag && { programTag: Array.from(tag.exactly(8), (byte) => byte.toString(16).padStart(2, '0')).join('') }),
    directAction: ((options.get(BPF.flags)?.u32 ?? 0) & DIRECT_ACTION) !== 0,
  };
};
