import { join } from 'node:path';
import type { LabLayout } from '../../layout/layout.ts';
import { runAsync } from '../../machine/command.ts';
import { checkout, imageFile, state } from '../../machine/paths.ts';
import { isRunning } from '../../node/node.ts';
import { images } from './images.ts';

/** Images as containerd stores them: imported once, not once for each node, since containerd hashes them three times to do so. */

/** Of the lab. node-init.sh makes a node's own of it, with hard links: containerd never changes what it has unpacked. */
export const imageStore = join(state, 'image-store');

const OWN_NAMESPACES = ['unshare', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc'];

/** Running nodes have theirs. @param ours tars of our programs' images @throws CommandError */
export const makeImageStore = async ({ nodes }: LabLayout, ours: readonly string[]): Promise<void> => {
  if (nodes.every(({ name }) => isRunning(name))) return;
  const tars = [...Object.keys(images).map(imageFile), ...ours];
  await runAsync([...OWN_NAMESPACES, join(checkout, 'tools/rig/image-store.sh'), imageStore, ...tars]);
};
