import { MessageWriter, readAttributes } from './attribute.codec.ts';
import { type Message, NetlinkDecodeError } from './message.codec.ts';
import { isAbsent, type NetlinkError } from './netlink-error.ts';
import { NetlinkSocket, PROTOCOL } from './netlink-socket.ts';

/** struct genlmsghdr: u8 command, u8 version, u16 reserved. Then attributes. */
const GENERIC_HEADER_BYTES = 4;
/** The controller, the one family with a fixed number (linux/genetlink.h). */
const CONTROLLER = { type: 16, getFamily: 3 } as const;
const CTRL = { familyId: 1, familyName: 2, version: 3, groups: 7, groupName: 1, groupId: 2 } as const;

/** A generic netlink family as the running kernel numbers it. */
export interface GenericFamily {
  readonly id: number;
  readonly name: string;
  readonly version: number;
  /** Multicast groups by name. */
  readonly groups: ReadonlyMap<string, number>;
}

interface GenericRequest {
  readonly command: number;
  readonly version?: number;
  /** What follows the generic header. */
  readonly attributes: Uint8Array;
  readonly flags?: number;
  readonly what: string;
}

export interface GenericSocket extends AsyncDisposable {
  /** undefined when no module brings it. */
  resolve(name: string): Promise<GenericFamily | undefined>;
  /** @throws NetlinkError */
  request(family: GenericFamily, request: GenericRequest): Promise<Message[]>;
  /** One after the other in one system call; the refusal of each. */
  apply(family: GenericFamily, requests: readonly GenericRequest[]): Promise<(NetlinkError | undefined)[]>;
  /** @throws NetlinkError, NetlinkDecodeError */
  dump<T>(family: GenericFamily, request: GenericRequest, decode: (message: Message) => T | undefined): Promise<T[]>;
  /** Hears a multicast group of a family; messages come to `onEvent`. */
  join(group: number): void;
  close(): void;
}

const encode = (request: GenericRequest): Uint8Array =>
  new MessageWriter(GENERIC_HEADER_BYTES + request.attributes.length)
    .u8(request.command)
    .u8(request.version ?? 1)
    .zeros(2)
    .raw(request.attributes)
    .bytes();

/** The attributes of a generic netlink message. @throws NetlinkDecodeError */
export const readGenericAttributes = (body: Uint8Array): ReturnType<typeof readAttributes> => {
  if (body.length < GENERIC_HEADER_BYTES)
    throw new NetlinkDecodeError(`generic netlink message of ${body.length} bytes: at least 4 are needed`);
  return readAttributes(body.subarray(GENERIC_HEADER_BYTES));
};

/** One CTRL_CMD_NEWFAMILY. @throws NetlinkDecodeError */
export const decodeFamily = (body: Uint8Array): GenericFamily => {
  const attributes = readGenericAttributes(body);
  const groups = new Map<string, number>();
  for (const entry of attributes.get(CTRL.groups)?.list() ?? []) {
    const group = entry.nested();
    const [name, id] = [group.get(CTRL.groupName), group.get(CTRL.groupId)];
    if (name && id) groups.set(name.text, id.u32);
  }
  return {
    id: attributes.get(CTRL.familyId)?.u16 ?? 0,
    name: attributes.get(CTRL.familyName)?.text ?? '',
    version: attributes.get(CTRL.version)?.u32 ?? 1,
    groups,
  };
};

const resolveFamily = async (socket: NetlinkSocket, name: string): Promise<GenericFamily | undefined> => {
  const attributes = new MessageWriter(64).attributeText(CTRL.familyName, name).bytes();
  const body = encode({ command: CONTROLLER.getFamily, attributes, what: '' });
  try {
    const [reply] = await socket.request({
      type: CONTROLLER.type,
      flags: 0,
      body,
      what: `find generic netlink family ${name}`,
    });
    return reply && decodeFamily(reply.body);
  } catch (error) {
    if (isAbsent(error)) return undefined;
    throw error;
  }
};

/** Generic netlink in one namespace. */
export const createGenericSocket = (
  options: { readonly netnsFd?: number; readonly onEvent?: (message: Message) => void } = {},
): GenericSocket => {
  const socket = new NetlinkSocket({ protocol: PROTOCOL.generic, ...options });
  const toRequest = (family: GenericFamily, request: GenericRequest) => ({
    type: family.id,
    flags: request.flags ?? 0,
    body: encode(request),
    what: request.what,
  });
  return {
    resolve: (name) => resolveFamily(socket, name),
    request: (family, request) => socket.request(toRequest(family, request)),
    apply: (family, requests) => socket.apply(requests.map((request) => toRequest(family, request))),
    dump: (family, request, decode) => socket.dump(toRequest(family, request), decode),
    join: (group) => socket.join(group),
    close: () => socket.close(),
    [Symbol.asyncDispose]: async () => socket.close(),
  };
};
