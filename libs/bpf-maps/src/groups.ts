import { LEADING_BYTES } from '#shape';
import type { Codec } from './codec.ts';
import {
  checkU32,
  type NextHop,
  readRemote,
  readTail,
  REMOTE,
  remoteBytes,
  setBytes,
  TAIL,
  writeTail,
} from './endpoints.ts';

/** Next-hop groups: struct nexthop_group of bpf/include/endpoints.h. */

export interface GroupMember extends NextHop {
  /** Share of the flows; 1 is usual, 0 carries nothing. */
  readonly weight: number;
}

/** Members that a group can hold. */
export const GROUP_MEMBERS = 16;
const MEMBER_BYTES = REMOTE + TAIL + 4;
const COUNT_AT = LEADING_BYTES.nexthopGroup;
const HEADER_BYTES = COUNT_AT + 8;
const LITTLE = true;

/** Index of a group, u32. */
export const groupKey: Codec<number> = {
  size: 4,
  write: (value, view, offset) => view.setUint32(offset, checkU32('group index', value), LITTLE),
  read: (view, offset) => view.getUint32(offset, LITTLE),
};

const writeMember = (member: GroupMember, view: DataView, at: number): void => {
  setBytes(view, at, remoteBytes(member.remote));
  writeTail(member, view, at + REMOTE);
  view.setUint32(at + REMOTE + TAIL, checkU32('weight', member.weight), LITTLE);
};

const readMember = (view: DataView, at: number): GroupMember => {
  const { isIpv6, group: _, ...tail } = readTail(view, at + REMOTE);
  return { ...tail, ...readRemote(view, at, isIpv6), weight: view.getUint32(at + REMOTE + TAIL, LITTLE) };
};

/** Up to 16 members, 584 bytes. */
export const nexthopGroup: Codec<readonly GroupMember[]> = {
  size: HEADER_BYTES + GROUP_MEMBERS * MEMBER_BYTES,
  write(members, view, offset) {
    if (members.length > GROUP_MEMBERS)
      throw new RangeError(`the group has ${members.length} members: at most ${GROUP_MEMBERS} fit`);
    setBytes(view, offset, new Uint8Array(this.size));
    for (const [index, member] of members.entries())
      writeMember(member, view, offset + HEADER_BYTES + index * MEMBER_BYTES);
    view.setUint32(offset + COUNT_AT, members.length, LITTLE);
  },
  read(view, offset) {
    const count = Math.min(view.getUint32(offset + COUNT_AT, LITTLE), GROUP_MEMBERS);
    return Array.from({ length: count }, (_, index) => readMember(view, offset + HEADER_BYTES + index * MEMBER_BYTES));
  },
};
