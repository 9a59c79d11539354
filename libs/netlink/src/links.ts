import { FLAG } from './message.codec.ts';
import { decodeLink, encodeLink, encodeLinkDump, encodeLinkRef, LINK_MESSAGE } from './link.codec.ts';
import type { Link, LinkRef, LinkSpec } from './model/link.ts';
import { isAbsent, NetlinkError } from './netlink-error.ts';
import { NetlinkSocket, PROTOCOL } from './netlink-socket.ts';
import type { Links } from './route-socket.port.ts';

const ENODEV = 19;

const getLink = async (socket: NetlinkSocket, link: LinkRef, netnsId?: number): Promise<Link | undefined> => {
  try {
    const [reply] = await socket.request({
      type: LINK_MESSAGE.get,
      flags: 0,
      body: encodeLinkRef(link, netnsId),
      what: `get link ${link}${netnsId === undefined ? '' : ` of namespace ${netnsId}`}`,
    });
    return reply && decodeLink(reply.body);
  } catch (error) {
    if (isAbsent(error)) return undefined;
    throw error;
  }
};

const mustGet = async (socket: NetlinkSocket, link: LinkRef): Promise<Link> => {
  const found = await getLink(socket, link);
  if (!found) throw new NetlinkError(ENODEV, `get link ${link}`);
  return found;
};

/** The kernel ignores an alias while it creates a link. */
const setAlias = async (socket: NetlinkSocket, { name, alias }: LinkSpec): Promise<Link> => {
  const link = await mustGet(socket, name);
  if (alias === undefined) return link;
  await socket.request({
    type: LINK_MESSAGE.new,
    flags: 0,
    body: encodeLink(link.index, { alias }),
    what: `set alias of link ${name}`,
  });
  return { ...link, alias };
};

const createLink = async (socket: NetlinkSocket, spec: LinkSpec): Promise<Link> => {
  const { alias: _alias, ...settings } = spec;
  const what = `create link ${spec.name} (${spec.kind.kind})`;
  await socket.request({ type: LINK_MESSAGE.new, flags: FLAG.create | FLAG.excl, body: encodeLink(0, settings), what });
  if (spec.netnsFd === undefined) return setAlias(socket, spec);
  await using there = new NetlinkSocket({ protocol: PROTOCOL.route, netnsFd: spec.netnsFd });
  return await setAlias(there, spec);
};

/** The links of the namespace that the socket is in. */
export const linksOf = (socket: NetlinkSocket): Links => ({
  list: (filter = {}) =>
    socket.dump({ type: LINK_MESSAGE.get, flags: 0, body: encodeLinkDump(filter), what: 'list links' }, ({ body }) => {
      const link = decodeLink(body);
      return filter.master === undefined || link.master === filter.master ? link : undefined;
    }),
  get: (link, { netnsId } = {}) => getLink(socket, link, netnsId),
  create: (spec) => createLink(socket, spec),
  modify: async (link, changes) => {
    const index = typeof link === 'number' ? link : (await mustGet(socket, link)).index;
    // RTM_NEWLINK, as RTM_SETLINK ignores what belongs to the kind.
    await socket.request({
      type: LINK_MESSAGE.new,
      flags: 0,
      body: encodeLink(index, changes),
      what: `change link ${link}`,
    });
  },
  delete: async (link) => {
    await socket.request({
      type: LINK_MESSAGE.delete,
      flags: 0,
      body: encodeLinkRef(link),
      what: `delete link ${link}`,
    });
  },
});
