import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { run } from '../../machine/command.ts';
import { checkout } from '../../machine/paths.ts';

/** A node in the network namespace of the process: a bridge, and pods at it. */

/** Everything that a run makes. */
export const PLACE = '/run/tailnet';
export const podStart = join(PLACE, 'pod-start');

const BRIDGE = 'br0';
/** The control server's address, and the pods' router. A stock tailscaled offers peers no address of 100.64.0.0/10: pods have others. */
const ADDRESSES = ['10.77.0.1/24', '10.1.0.1/24'];

export const makeNode = (): void => {
  mkdirSync(PLACE, { mode: 0o700 });
  run([join(checkout, 'deploy/image/build.sh'), podStart, 'pod-start']);
  const addresses = ADDRESSES.map((address) => `addr add ${address} dev ${BRIDGE}`);
  const lines = [
    'link set lo up',
    `link add ${BRIDGE} type bridge`,
    `link set ${BRIDGE} addrgenmode none`,
    ...addresses,
  ];
  run(['ip', '-batch', '-'], { input: [...lines, `link set ${BRIDGE} up`, ''].join('\n') });
};

export interface PodNetwork {
  readonly netns: string;
  /** What runs a program there, before it. */
  readonly enter: readonly string[];
}

/** On the node's side. */
export const linkOf = (name: string): string => `v-${name}`;

/** @param number of its address */
export const createPodNetwork = (name: string, number: number): PodNetwork => {
  const netns = `/run/netns/${name}`;
  run(['ip', 'netns', 'add', name]);
  run(['ip', 'link', 'add', linkOf(name), 'type', 'veth', 'peer', 'name', 'eth0', 'netns', name]);
  run(['ip', 'link', 'set', linkOf(name), 'master', BRIDGE, 'addrgenmode', 'none', 'up']);
  const enter = ['nsenter', `--net=${netns}`];
  const lines = ['link set lo up', 'link set eth0 up', `addr add 10.1.0.${number}/24 dev eth0`];
  run([...enter, 'ip', '-batch', '-'], { input: [...lines, 'route add default via 10.1.0.1', ''].join('\n') });
  return { netns, enter };
};
