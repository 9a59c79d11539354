/**
 * File capabilities (capabilities(7)): what a program is given when somebody runs it who has it in the bounding set, whoever that is. In a
 * tar they are the extended attribute security.capability of the file, which container runtimes and GNU tar set when they unpack it.
 */

/** Numbers of linux/capability.h. */
const NUMBERS = { NET_ADMIN: 12, SYS_ADMIN: 21 } as const;
export type FileCapability = keyof typeof NUMBERS;

/** struct vfs_cap_data: of the second revision, with the flag by which the program has them from its start (`+ep`). */
const [VFS_CAP_REVISION_2, EFFECTIVE, BYTES] = [0x0200_0000, 1, 20];
/** Of the first 32 capabilities; those that it inherits and the higher 32 follow, and stay 0. */
const [HEADER, PERMITTED] = [0, 4];

export const capabilityAttribute = (names: readonly FileCapability[]): Buffer => {
  const attribute = Buffer.alloc(BYTES);
  attribute.writeUInt32LE(VFS_CAP_REVISION_2 | EFFECTIVE, HEADER);
  attribute.writeUInt32LE(
    names.reduce((bits, name) => bits | (1 << NUMBERS[name]), 0),
    PERMITTED,
  );
  return attribute;
};

/** PAX records of a tar for {@link capabilityAttribute}. All bytes of these capabilities are ASCII: tar-stream writes a record as UTF-8. */
export const capabilityRecords = (names: readonly FileCapability[]): Record<string, string> => ({
  'SCHILY.xattr.security.capability': capabilityAttribute(names).toString('latin1'),
});
