import { type Attribute, MessageWriter, readAttributes } from './attribute.codec.ts';
import { addressText, afOf, ipFamily, prefixBytes, type PrefixBytes } from './address.codec.ts';
import { NetlinkDecodeError } from './message.codec.ts';
import type { IpFamily, Rule, RuleSpec } from './model/route.ts';

/** RTM_* and FRA_* (linux/fib_rules.h). */
export const RULE_MESSAGE = { new: 32, delete: 33, get: 34 } as const;
const FRA = {
  dst: 1,
  src: 2,
  iif: 3,
  priority: 6,
  mark: 10,
  suppressPrefixLength: 14,
  table: 15,
  markMask: 16,
  oif: 17,
  protocol: 21,
} as const;
const ACTIONS = { lookup: 1, blackhole: 6, unreachable: 7, prohibit: 8 } as const; // FR_ACT_*
const INVERT = 2; // FIB_RULE_INVERT
const HEADER_BYTES = 12;
const [MAIN_TABLE, IN_ATTRIBUTE, ANY_MASK] = [254, 0, 0xffff_ffff];

const endpoint = (text: string | undefined, family: IpFamily, field: string): PrefixBytes | undefined => {
  if (text === undefined) return undefined;
  const prefix = prefixBytes(text);
  if ((prefix.bytes.length === 4) !== (family === 4))
    throw new RangeError(`${field} "${text}" of an IPv${family} rule must be an IPv${family} prefix`);
  return prefix;
};

/** struct fib_rule_hdr: u8 family, dst length, src length, tos, table, 2 reserved, action; u32 flags. */
export const encodeRule = (rule: RuleSpec): Uint8Array => {
  const [dst, src] = [endpoint(rule.dst, rule.family, 'dst'), endpoint(rule.src, rule.family, 'src')];
  const action = ACTIONS[rule.action ?? 'lookup'];
  const table = action === ACTIONS.lookup ? (rule.table ?? MAIN_TABLE) : 0;
  const writer = new MessageWriter(96)
    .u8(afOf(rule.family))
    .u8(dst?.length ?? 0)
    .u8(src?.length ?? 0)
    .u8(0);
  writer
    .u8(table > 255 ? IN_ATTRIBUTE : table)
    .zeros(2)
    .u8(action)
    .u32(rule.invert ? INVERT : 0);
  writer.attributeU32(FRA.priority, rule.priority);
  if (dst) writer.attribute(FRA.dst, dst.bytes);
  if (src) writer.attribute(FRA.src, src.bytes);
  if (table > 255) writer.attributeU32(FRA.table, table);
  if (rule.mark) writer.attributeU32(FRA.mark, rule.mark.value).attributeU32(FRA.markMask, rule.mark.mask);
  if (rule.suppressPrefixLength !== undefined) writer.attributeU32(FRA.suppressPrefixLength, rule.suppressPrefixLength);
  if (rule.iif !== undefined) writer.attributeText(FRA.iif, rule.iif);
  if (rule.oif !== undefined) writer.attributeText(FRA.oif, rule.oif);
  if (rule.protocol !== undefined) writer.attributeU8(FRA.protocol, rule.protocol);
  return writer.bytes();
};

export const encodeRuleDump = (filter: { readonly family?: IpFamily }): Uint8Array =>
  new MessageWriter(HEADER_BYTES).u8(afOf(filter.family)).zeros(11).bytes();

const actionName = (code: number): NonNullable<RuleSpec['action']> => {
  for (const [name, value] of Object.entries(ACTIONS)) if (value === code) return name as keyof typeof ACTIONS;
  return 'lookup';
};

const prefix = (attribute: Attribute | undefined, length: number): string | undefined =>
  attribute && `${addressText(attribute.bytes)}/${length}`;

/** One RTM_NEWRULE or RTM_DELRULE. @throws NetlinkDecodeError, also for families other than IPv4 and IPv6 */
export const decodeRule = (body: Uint8Array): Rule => {
  if (body.length < HEADER_BYTES) {
    throw new NetlinkDecodeError(`rule message of ${body.length} bytes: struct fib_rule_hdr alone has ${HEADER_BYTES}`);
  }
  const view = new DataView(body.buffer, body.byteOffset, body.length);
  const attributes = readAttributes(body.subarray(HEADER_BYTES));
  const [dst, src] = [
    prefix(attributes.get(FRA.dst), view.getUint8(1)),
    prefix(attributes.get(FRA.src), view.getUint8(2)),
  ];
  const [mark, mask, suppress] = [
    attributes.get(FRA.mark),
    attributes.get(FRA.markMask),
    attributes.get(FRA.suppressPrefixLength),
  ];
  const [iif, oif, protocol] = [attributes.get(FRA.iif), attributes.get(FRA.oif), attributes.get(FRA.protocol)];
  return {
    family: ipFamily(view.getUint8(0)),
    priority: attributes.get(FRA.priority)?.u32 ?? 0,
    table: attributes.get(FRA.table)?.u32 ?? view.getUint8(4),
    action: actionName(view.getUint8(7)),
    // A mark of 0 it does not say, with a mask.
    ...((mark ?? mask) && { mark: { value: mark?.u32 ?? 0, mask: mask?.u32 ?? ANY_MASK } }),
    ...(src !== undefined && { src }),
    ...(dst !== undefined && { dst }),
    ...(iif && { iif: iif.text }),
    ...(oif && { oif: oif.text }),
    // The kernel says -1 where nothing is suppressed.
    ...(suppress && suppress.i32 >= 0 && { suppressPrefixLength: suppress.i32 }),
    ...((view.getUint32(8, true) & INVERT) !== 0 && { invert: true }),
    ...(protocol && { protocol: protocol.u8 }),
  };
};

export const isIpRule = (body: Uint8Array): boolean => body[0] === afOf(4) || body[0] === afOf(6);
