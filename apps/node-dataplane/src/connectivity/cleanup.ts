import { dirname, join } from 'node:path';
import { unitNames } from '@unbounded/keeper-protocol';
import type { RouteSocket } from '@unbounded/netlink';
import { removeCniConfig } from '../attachment/config.ts';
import { removePins, removeSectionPins } from '../bpf/pin-folder.ts';
import { removeNetlinkPath } from '../data-path/netlink/route-objects.ts';
import { staleDevices } from './kernel/devices.ts';
import { removeDevice } from '../kernel/links.ts';
import { removeUnit } from './kernel/keeper-units.ts';
import { removeAllRoutes } from '../kernel/routes.ts';
import { ensureRules } from './kernel/rules.ts';
import { createSysctls } from '../kernel/sysctls.ts';
import { runAll } from '../run-all.ts';
import type { CleanupContext } from '../section.port.ts';

/** Where connectivity had its files (options of the agent). */
export interface ConnectivityFolders {
  readonly cniConfDir: string;
  readonly cniSocket: string;
  readonly unitsDir: string;
  readonly bpffsDir: string;
  readonly stateDir: string;
}

const removeUnits = (folder: string): void => {
  for (const device of unitNames(folder))
    if (!removeUnit(folder, device)) throw new Error(`cannot remove the unit of ${device} in ${folder}`);
};

const removeDevices = async (net: RouteSocket, say: CleanupContext['say']): Promise<void> => {
  for (const link of await staleDevices(net, new Set())) {
    say(`removing device ${link.name}`);
    await removeDevice(net, link);
  }
};

/**
 * Routes first, so that packets leave as they did before us; settings last. The key pair stays: it is the node's identity.
 * @throws AggregateError when something is left; the rest is gone all the same
 */
export const createCleanUp =
  (folders: ConnectivityFolders) =>
  async ({ net, say }: Pick<CleanupContext, 'net' | 'say'>): Promise<void> => {
    await runAll([
      () => removeCniConfig({ configurations: folders.cniConfDir, volatile: dirname(folders.cniSocket) }),
      () => removeAllRoutes(net),
      () => ensureRules(net, undefined),
      () => removeNetlinkPath(net),
      () => removeUnits(folders.unitsDir),
      () => removeSectionPins(folders.bpffsDir),
      () => removePins(folders.bpffsDir),
      () => removeDevices(net, say),
      () => createSysctls(join(folders.stateDir, 'sysctls.json')).restore(),
    ]);
  };
