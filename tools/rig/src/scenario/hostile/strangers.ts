import { join } from 'node:path';
import { type Bytes, hexOf } from '@unbounded/testing/packets';
import { inNamespace, run, runAsync } from '../../machine/command.ts';
import { namespaceOf } from '../../layout/layout.ts';
import { binary, checkout, nodeJs } from '../../machine/paths.ts';

/** Where a relay takes clients; keys of its members are no secret. */
export interface RelayDoor {
  readonly host: string;
  readonly port: number;
  /** Base64. */
  readonly memberKey: string;
}

/** A host without any credentials, in a network namespace of its own; it goes with the lab. */
export interface Stranger {
  readonly name: string;
  readonly address: string;
  /** At a port, what it can think of. @returns what came of it. @throws Error when it had success */
  atRelay(attempt: string, relay: RelayDoor): Promise<string>;
  atPort(how: 'tcp' | 'udp' | 'closed', host: string, port: number): Promise<string>;
  /** Whole IP packets, as its routes lead. */
  send(packets: readonly Bytes[]): Promise<void>;
  /** Ethernet frames. */
  sendFrames(frames: readonly Bytes[]): Promise<void>;
}

export interface Place {
  readonly name: string;
  /** The switch of the LAN or the WAN. */
  readonly bridge: { readonly namespace: string; readonly name: string };
  /** With its length. */
  readonly address: string;
  readonly gateway?: string;
}

const program = join(checkout, 'tools/rig/src/scenario/hostile/stranger.ts');
const lines = (packets: readonly Bytes[]): string => packets.map((packet) => `${hexOf(packet)}\n`).join('');

/** Plugs a host into a switch. */
export const makeStranger = ({ name, bridge, address, gateway }: Place): Stranger => {
  const namespace = namespaceOf(name);
  run(['ip', 'netns', 'add', namespace]);
  run(['ip', '-n', bridge.namespace, '-batch', '-'], {
    input: `link add ${name} type veth peer name eth0 netns ${namespace}\nlink set ${name} master ${bridge.name} up\n`,
  });
  run(['ip', '-n', namespace, '-batch', '-'], {
    input: [
      'link set lo up',
      `addr add ${address} dev eth0`,
      'link set eth0 up',
      ...(gateway === undefined ? [] : [`route add default via ${gateway}`]),
      '',
    ].join('\n'),
  });
  const inside = (argv: readonly string[], input?: string): Promise<string> =>
    runAsync([...inNamespace(namespace), ...argv], { timeoutMs: 60_000, ...(input === undefined ? {} : { input }) });
  const tries = async (...args: string[]): Promise<string> => (await inside([nodeJs, program, ...args])).trim();
  return {
    name,
    address: address.replace(/\/.*$/, ''),
    atRelay: (attempt, { host, port, memberKey }) => tries('relay', host, String(port), attempt, memberKey),
    atPort: (how, host, port) => tries(how, host, String(port)),
    send: async (packets) => void (await inside([binary('probe'), 'inject', 'packets'], lines(packets))),
    sendFrames: async (frames) => void (await inside([binary('probe'), 'inject', 'frames', 'eth0'], lines(frames))),
  };
};
