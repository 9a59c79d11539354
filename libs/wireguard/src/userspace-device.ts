import { createConnection } from 'node:net';
import { getSystemErrorName } from 'node:util';

import { type DeviceState, type WireGuardDevice, WireGuardError } from './device.ts';
import { publicKeyOf } from './key.ts';
import { ANSWER_END, formatSet, GET_REQUEST, parseState, readErrno } from './uapi.codec.ts';

export interface UserspaceOptions {
  /** Default `/var/run/wireguard/<name>.sock`. */
  readonly socketPath?: string;
  /** A device that says nothing for so long is unreachable; default 5 s. */
  readonly timeoutMs?: number;
}

/** 5,000 peers with 100 prefixes each are some 16 MB. */
const LONGEST_ANSWER = 64 << 20;

/** One request over a connection of its own, as `wg` does it: the device then never holds a half-read conversation. */
const ask = (path: string, request: string, timeoutMs: number): Promise<string> =>
  new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let [size, tail] = [0, ''];
    const socket = createConnection({ path });
    const fail = (error: WireGuardError): void => {
      reject(error);
      socket.destroy();
    };
    socket.setTimeout(timeoutMs, () =>
      fail(new WireGuardError('unreachable', `${path} did not answer within ${timeoutMs} ms`)),
    );
    socket.on('connect', () => socket.write(request));
    socket.on('data', (chunk) => {
      chunks.push(chunk);
      size += chunk.length;
      tail = (tail + chunk.subarray(-2).toString('latin1')).slice(-2);
      if (size > LONGEST_ANSWER)
        fail(new WireGuardError('malformed', `${path} answered with more than ${LONGEST_ANSWER} bytes`));
      else if (tail === ANSWER_END) {
        resolve(Buffer.concat(chunks).toString('latin1'));
        socket.destroy();
      }
    });
    socket.on('close', () =>
      reject(new WireGuardError('unreachable', `${path} closed the connection before it answered`)),
    );
    socket.on('error', (error: NodeJS.ErrnoException) => {
      const absent = error.code === 'ENOENT' || error.code === 'ECONNREFUSED';
      fail(new WireGuardError(absent ? 'absent' : 'unreachable', `${path}: ${error.code ?? error.message}`));
    });
  });

/** A device that wireguard-go (or another user-space implementation) runs. Opening it connects nowhere yet. */
export const openUserspaceDevice = (name: string, options: UserspaceOptions = {}): WireGuardDevice => {
  const path = options.socketPath ?? `/var/run/wireguard/${name}.sock`;
  const timeoutMs = options.timeoutMs ?? 5000;
  const request = async (text: string, verb: string): Promise<string> => {
    const answer = await ask(path, text, timeoutMs);
    const errno = readErrno(answer);
    if (errno !== 0) throw new WireGuardError('refused', `${verb} device ${name}: ${errorName(errno)}`);
    return answer;
  };
  return {
    get: async () => {
      const { privateKey, ...state } = parseState(await request(GET_REQUEST, 'read'));
      return privateKey === undefined
        ? state
        : ({ ...state, publicKey: publicKeyOf(privateKey) } satisfies DeviceState);
    },
    apply: async (change) => {
      await request(formatSet(change), 'change');
    },
    [Symbol.asyncDispose]: async () => {},
  };
};

const errorName = (errno: number): string => {
  try {
    return getSystemErrorName(-errno);
  } catch {
    return `errno ${errno}`;
  }
};
