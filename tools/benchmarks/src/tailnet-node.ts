import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { run } from '@unbounded/rig/command';
import { createPodNetwork, linkOf, PLACE, type PodNetwork } from '@unbounded/rig/tailnet-bridge-node';

/** Pods that come and go at the bridge of the node. */

export interface Pod extends PodNetwork {
  readonly name: string;
  /** For what is kept of its device; the node's. */
  readonly folder: string;
  remove(): void;
}

/** @param number of its address */
export const createPod = (name: string, number: number): Pod => {
  const folder = join(PLACE, name);
  mkdirSync(folder, { mode: 0o700 });
  const network = createPodNetwork(name, number);
  const remove = (): void => {
    run(['ip', 'link', 'delete', linkOf(name)]); // a namespace and what is in it go some time later
    run(['ip', 'netns', 'delete', name]);
    rmSync(folder, { recursive: true });
  };
  return { ...network, name, folder, remove };
};
