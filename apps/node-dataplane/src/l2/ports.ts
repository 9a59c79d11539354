import { closeSync, openSync } from 'node:fs';
import { createEthtool, type Ethtool, type Link, type RouteSocket } from '@unbounded/netlink';
import { removeDevice } from '../kernel/links.ts';
import { writeSetting } from '../kernel/proc-sys.ts';
import { L2_PORT_ALIAS, PORT_PREFIX } from './names.ts';

/** The link of a pod to a Network: a veth whose end on the node is the port. */

export interface PortSpec {
  /** Of the node's end. */
  readonly device: string;
  /** Path of the pod's network namespace. */
  readonly netns: string;
  /** Name of the pod's end. */
  readonly interface: string;
  readonly mac: string;
  /** Of the network. */
  readonly mtuBytes: number;
}

/** What is longer than the network's MTU is to come to the program, which answers it: the veth would drop it and say nothing. */
const HOST_MTU_BYTES = 9000;
/** In place of PORT_PREFIX: of the pod's end while it is still on the node. */
const BORN_PREFIX = 'l2n';

const openNamespace = (path: string): { readonly fd: number } & Disposable => {
  const fd = openSync(path, 'r');
  return { fd, [Symbol.dispose]: () => closeSync(fd) };
};

/** The node has nothing to say there: no address, no neighbor discovery. */
const silence = (device: string): void => {
  writeSetting(`net/ipv6/conf/${device}/disable_ipv6`, '1');
  writeSetting(`net/ipv4/conf/${device}/arp_ignore`, '8');
};

/** Ours by the alias; in place of one of that name which is left of a pod before. */
const createPair = async (net: RouteSocket, { device }: PortSpec, born: string): Promise<Link> => {
  const left = await net.links.get(device);
  if (left && left.alias !== L2_PORT_ALIAS)
    throw new Error(`a link named ${device} exists that is not ours (its alias is not "${L2_PORT_ALIAS}"): remove it`);
  if (left) await removeDevice(net, left); // and the other end with it, wherever that is
  const kind = { kind: 'veth', peer: { name: born } } as const;
  return net.links.create({ name: device, kind, mtu: HOST_MTU_BYTES, arp: false, alias: L2_PORT_ALIAS });
};

/**
 * Makes the link, the pod's end with its MAC and MTU, down: the CNI plugin gives it its addresses and sets it up. The port is down, too,
 * until its program stands there. @throws NetlinkError, Error: nothing is left then
 */
export const createPort = async (net: RouteSocket, ethtool: Ethtool, spec: PortSpec): Promise<Link> => {
  using namespace = openNamespace(spec.netns);
  const born = spec.device.replace(PORT_PREFIX, BORN_PREFIX);
  const port = await createPair(net, spec, born);
  try {
    silence(spec.device);
    const inside = await net.links.get(born);
    if (!inside) throw new Error(`the other end of ${spec.device} is gone`);
    // Next header 143 cannot be segmented further on: the pod hands on no packet that has to be. Nor one whose checksum is to be written
    // later: with CAP_NET_RAW it names the place (PACKET_VNET_HDR), and the 16 bits there would change after the programs have read them.
    await ethtool.turnTransmitOffloadsOff(inside.index);
    await net.links.modify(inside.index, { mac: spec.mac, mtu: spec.mtuBytes });
    await net.links.modify(inside.index, { name: spec.interface, netnsFd: namespace.fd });
    return port;
  } catch (error) {
    await removeDevice(net, port);
    throw error;
  }
};

export const removePort = async (net: RouteSocket, device: string): Promise<void> => {
  const port = await net.links.get(device);
  if (port?.alias === L2_PORT_ALIAS) await removeDevice(net, port);
};

export interface Ports extends Disposable {
  /** @throws NetlinkError, Error: nothing is left then */
  create(spec: PortSpec): Promise<void>;
  /** One that is gone is fine. */
  remove(device: string): Promise<void>;
  stateOf(device: string): Promise<'up' | 'down' | 'gone'>;
}

export const openPorts = (net: RouteSocket): Ports => {
  const ethtool = createEthtool();
  return {
    create: async (spec) => void (await createPort(net, ethtool, spec)),
    remove: (device) => removePort(net, device),
    async stateOf(device) {
      const port = await net.links.get(device);
      return port ? (port.up ? 'up' : 'down') : 'gone';
    },
    [Symbol.dispose]: () => ethtool[Symbol.dispose](),
  };
};
