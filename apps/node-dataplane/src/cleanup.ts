import { existsSync, readdirSync, rmdirSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { NFT_GUARD_TABLE, NFT_TABLE, RUN_FOLDER } from '@unbounded/config/ownership';
import { unitDevices } from '@unbounded/keeper-protocol';
import { createRouteSocket } from '@unbounded/netlink';
import { createNftables } from '@unbounded/nftables';
import { removeCniConfig } from './cni/config.ts';
import { removeCniPlugin } from './cni/install.ts';
import { removeDevice, staleDevices } from './kernel/devices.ts';
import { removeUnit } from './kernel/keeper-units.ts';
import { removeAllRoutes } from './kernel/routes.ts';
import { ensureRules } from './kernel/rules.ts';
import { removeNetlinkPath } from './data-path/netlink/route-objects.ts';
import { checkPinFolder, removePins } from './data-path/ebpf/pin-folder.ts';
import { createSysctls } from './kernel/sysctls.ts';

/** A mount point, and one on a read-only file system. */
const LEFT_TO_OWNER = new Set(['EBUSY', 'EROFS']);

/** Empties a folder and removes it, unless it is a mount point (a volume of the pod): that is its owner's to remove. */
const removeFolder = (folder: string): void => {
  if (!existsSync(folder)) return;
  for (const name of readdirSync(folder)) rmSync(join(folder, name), { recursive: true, force: true });
  try {
    rmdirSync(folder);
  } catch (error) {
    if (!LEFT_TO_OWNER.has((error as NodeJS.ErrnoException).code ?? '')) throw error;
  }
};

/** Where the agent that is taken away had its files (its own options). */
export interface CleanupFolders {
  readonly cniConfFolder: string;
  readonly cniSocket: string;
  readonly cniBinFolder: string;
  readonly unitsFolder: string;
  readonly pinFolder: string;
  readonly stateFolder: string;
}

/**
 * Uninstall: takes away everything of ours from the node's kernel and folders, and puts recorded settings back. The key
 * pair stays: it is the node's identity, and a node that comes back is known by it.
 */
export const cleanUp = async (folders: CleanupFolders, say: (line: string) => void): Promise<void> => {
  checkPinFolder(folders.pinFolder); // before anything is taken away
  await using net = createRouteSocket();
  await using nft = createNftables();
  removeCniConfig({ configurations: folders.cniConfFolder, volatile: dirname(folders.cniSocket) });
  removeCniPlugin(folders.cniBinFolder);
  await removeAllRoutes(net);
  await ensureRules(net, undefined);
  await removeNetlinkPath(net);
  for (const device of unitDevices(folders.unitsFolder))
    if (!removeUnit(folders.unitsFolder, device))
      throw new Error(`cannot remove the unit of ${device} in ${folders.unitsFolder}`);
  removePins(folders.pinFolder);
  for (const link of await staleDevices(net, new Set())) {
    say(`removing device ${link.name}`);
    await removeDevice(net, link);
  }
  if (await nft.deleteTable('inet', NFT_TABLE)) say(`removing nftables table ${NFT_TABLE}`);
  if (await nft.deleteTable('bridge', NFT_GUARD_TABLE)) say(`removing nftables table ${NFT_GUARD_TABLE}`);
  createSysctls(join(folders.stateFolder, 'sysctls.json')).restore();
  removeFolder(folders.stateFolder);
  removeFolder(RUN_FOLDER);
  say(
    'the node is as it was; the WireGuard key pair in /etc/wireguard stays (remove it by hand to give the node a new identity)',
  );
};
