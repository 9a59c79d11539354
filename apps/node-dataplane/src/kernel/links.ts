import { isAbsent, type Link, type RouteSocket } from '@unbounded/netlink';

/** A device that is gone already is fine. */
export const removeDevice = async (net: RouteSocket, link: Link): Promise<void> => {
  try {
    await net.links.delete(link.index);
  } catch (error) {
    if (!isAbsent(error)) throw error;
  }
};
