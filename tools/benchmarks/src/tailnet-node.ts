import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { run } from '@unbounded/rig/command';
import { checkout } from '@unbounded/rig/paths';

/** A node in the network namespace of the process: a bridge, and pods at it. */

/** Everything that a run makes. */
export const PLACE = '/run/tailnet';
export const podStart = join(PLACE, 'pod-start');

/** The control server's address, and the pods' router. A stock tailscaled offers peers no address of 100.64.0.0/10: pods have others. */
const ADDRESSES = ['10.77.0.1/24', '10.1.0.1/24'];

export const makeNode = (): void => {
  mkdirSync(PLACE, { mode: 0o700 });
  run([join(checkout, 'deploy/image/build.sh'), podStart, 'pod-start']);
  run(['ip', 'link', 'set', 'lo', 'up']);
  run(['ip', 'link', 'add', 'br0', 'type', 'bridge']);
  run(['ip', 'link', 'set', 'br0', 'addrgenmode', 'none']);
  for (const address of ADDRESSES) run(['ip', 'addr', 'add', address, 'dev', 'br0']);
  run(['ip', 'link', 'set', 'br0', 'up']);
};

export interface Pod {
  readonly name: string;
  readonly netns: string;
  /** What runs a program there, before it. */
  readonly enter: readonly string[];
  /** For what is kept of its device; the node's. */
  readonly folder: string;
  remove(): void;
}

/** @param number of its address */
export const createPod = (name: string, number: number): Pod => {
  const [netns, folder] = [`/run/netns/${name}`, join(PLACE, name)];
  mkdirSync(folder, { mode: 0o700 });
  run(['ip', 'netns', 'add', name]);
  run(['ip', 'link', 'add', `v-${name}`, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', name]);
  run(['ip', 'link', 'set', `v-${name}`, 'master', 'br0', 'addrgenmode', 'none', 'up']);
  const enter = ['nsenter', `--net=${netns}`];
  const lines = ['link set lo up', 'link set eth0 up', `addr add 10.1.0.${number}/24 dev eth0`];
  const input = [...lines, 'route add default via 10.1.0.1', ''].join('\n');
  run([...enter, 'ip', '-batch', '-'], { input });
  const remove = (): void => {
    run(['ip', 'link', 'delete', `v-${name}`]); // a namespace and what is in it go some time later
    run(['ip', 'netns', 'delete', name]);
    rmSync(folder, { recursive: true });
  };
  return { ...{ name, netns, enter, folder }, remove };
};
