import {
  createGenericSocket,
  type GenericFamily,
  isAbsent,
  NetlinkError,
  readGenericAttributes,
} from '@unbounded/netlink';

import { type WireGuardDevice, WireGuardError } from './device.ts';
import { COMMAND, decodeDevice, encodeChange, encodeGet, FAMILY, joinParts } from './generic.codec.ts';

/** The kernel's words with a reason; `what` holds no key. */
const translate = (error: unknown): never => {
  if (!(error instanceof NetlinkError)) throw error;
  throw new WireGuardError(isAbsent(error) ? 'absent' : 'refused', error.message, { cause: error });
};

/** A device of the kernel's own module. The socket opens at the first use. */
export const openKernelDevice = (name: string, options: { readonly netnsFd?: number } = {}): WireGuardDevice => {
  const socket = createGenericSocket(options);
  let family: GenericFamily | undefined;
  const resolved = async (): Promise<GenericFamily> => {
    family ??= await socket.resolve(FAMILY);
    if (!family)
      throw new WireGuardError('absent', 'this kernel has no WireGuard (no generic netlink family "wireguard")');
    return family;
  };
  return {
    get: async () => {
      const request = { command: COMMAND.get, attributes: encodeGet(name), what: `read WireGuard device ${name}` };
      const parts = await socket
        .dump(await resolved(), request, ({ body }) => decodeDevice(readGenericAttributes(body)))
        .catch(translate);
      const state = joinParts(parts);
      if (!state) throw new WireGuardError('absent', `there is no WireGuard device ${name}`);
      return state;
    },
    apply: async (change) => {
      const generic = await resolved();
      for (const attributes of encodeChange(name, change)) {
        await socket
          .request(generic, { command: COMMAND.set, attributes, what: `change WireGuard device ${name}` })
          .catch(translate);
      }
    },
    [Symbol.asyncDispose]: async () => socket.close(),
  };
};
