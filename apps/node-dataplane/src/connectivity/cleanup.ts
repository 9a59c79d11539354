import { dirname, join } from 'node:path';
import { unitDevices } from '@unbounded/keeper-protocol';
import { removeCniConfig } from '../attachment/config.ts';
import { removePins } from '../data-path/ebpf/pin-folder.ts';
import { removeNetlinkPath } from '../data-path/netlink/route-objects.ts';
import { removeDevice, staleDevices } from '../kernel/devices.ts';
import { removeUnit } from '../kernel/keeper-units.ts';
import { removeAllRoutes } from '../kernel/routes.ts';
import { ensureRules } from '../kernel/rules.ts';
import { createSysctls } from '../kernel/sysctls.ts';
import type { CleanupContext } from '../section.port.ts';

/** Where connectivity had its files (options of the agent). */
export interface ConnectivityFolders {
  readonly cniConfFolder: string;
  readonly cniSocket: string;
  readonly unitsFolder: string;
  readonly pinFolder: string;
  readonly stateFolder: string;
}

/** Routes first, so that packets leave as they did before us; settings last. The key pair stays: it is the node's identity. */
export const createCleanUp =
  (folders: ConnectivityFolders) =>
  async ({ net, say }: CleanupContext): Promise<void> => {
    removeCniConfig({ configurations: folders.cniConfFolder, volatile: dirname(folders.cniSocket) });
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
    createSysctls(join(folders.stateFolder, 'sysctls.json')).restore();
  };
