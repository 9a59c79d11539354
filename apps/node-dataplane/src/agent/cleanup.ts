import { existsSync, readdirSync, rmdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { CONNECTIVITY, NFT_GUARD_TABLE, RUN_FOLDER, TAILNET_RUN_FOLDER } from '@unbounded/config/ownership';
import { createRouteSocket } from '@unbounded/netlink';
import { createNftables } from '@unbounded/nftables';
import { removeUnlisted } from './unlisted.ts';
import { removeCniPlugin } from '../attachment/install.ts';
import { type ConnectivityFolders, createCleanUp } from '../connectivity/cleanup.ts';
import { checkPinFolder } from '../bpf/pin-folder.ts';
import { runAll } from '../run-all.ts';
import type { SectionType } from '../section.port.ts';

/** A mount point, and one on a read-only file system. */
const LEFT_TO_OWNER = new Set(['EBUSY', 'EROFS']);

/**
 * Empties a folder and removes it, unless it is a mount point (a volume of the pod): that is its owner's to remove.
 * @param others a folder in it that is somebody else's
 */
const removeFolder = (folder: string, others?: string): void => {
  if (!existsSync(folder)) return;
  const paths = readdirSync(folder).map((name) => join(folder, name));
  for (const path of paths) if (path !== others) rmSync(path, { recursive: true, force: true });
  if (others !== undefined && paths.includes(others)) return;
  try {
    rmdirSync(folder);
  } catch (error) {
    if (!LEFT_TO_OWNER.has((error as NodeJS.ErrnoException).code ?? '')) throw error;
  }
};

/** Where the agent that is taken away had its files (its own options). */
export interface CleanupFolders extends ConnectivityFolders {
  readonly cniBinDir: string;
  readonly cniReservationsDir: string;
}

/**
 * Uninstall: takes away everything of ours from the node's kernel and folders, and puts recorded settings back. The key
 * pair stays: it is the node's identity, and a node that comes back is known by it. What cannot be taken away keeps nothing else.
 * @throws AggregateError when something is left
 */
export const cleanUp = async (
  folders: CleanupFolders,
  say: (line: string) => void,
  sections: readonly Pick<SectionType, 'name' | 'cleanUp'>[] = [
    { name: CONNECTIVITY, cleanUp: createCleanUp(folders) },
  ],
): Promise<void> => {
  checkPinFolder(folders.bpffsDir); // before anything is taken away
  await using net = createRouteSocket();
  await using nft = createNftables();
  const step = (what: string, work: () => unknown) => async (): Promise<void> => {
    try {
      await work();
    } catch (error) {
      const message = `${what}: ${(error as Error).message}`;
      say(`FAILED ${message}`);
      throw new Error(message, { cause: error });
    }
  };
  await runAll([
    step('the CNI plugin', () => removeCniPlugin(folders.cniBinDir)),
    ...sections.toReversed().map(({ name, cleanUp: end }) => step(`section ${name}`, () => end?.({ net, nft, say }))),
    step('what sections left', () => removeUnlisted({ net, nft }, [], say)),
    step('addresses reserved for pods', () => removeFolder(folders.cniReservationsDir)),
    step(`nftables table ${NFT_GUARD_TABLE}`, async () => {
      if (await nft.deleteTable('bridge', NFT_GUARD_TABLE)) say(`removing nftables table bridge ${NFT_GUARD_TABLE}`);
    }),
  ]);
  // Only then: the state says what is to be put back, and is needed for another try.
  removeFolder(folders.stateDir);
  removeFolder(RUN_FOLDER, TAILNET_RUN_FOLDER);
  say(
    'the node is as it was; the WireGuard key pair in /etc/wireguard stays (remove it by hand to give the node a new identity)',
  );
};
