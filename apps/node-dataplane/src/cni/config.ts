import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { CNI_CONF_NAME } from '@unbounded/config/ownership';
import { removeFile, replaceFile } from '@unbounded/state-files';
import { DEVICES, type NodePlan, type Problem } from '@unbounded/topology';
import { holds } from '../kernel/held-text.ts';
import { createStateFaults, type StateFaults } from '../kernel/state-faults.ts';

/** The CNI configuration: kubelet's runtime calls the plug-ins of this list for every pod. */

/** Name of our binary in the CNI folder. */
export const CNI_PLUGIN = 'unbounded-cni';

/**
 * The list (CNI 1.0.0). host-local owns the addresses. Ours is the first: until a plan is applied it refuses, before bridge
 * makes a bridge of its own; and the last, where it learns of the pod.
 */
export const cniConfig = (plan: NodePlan): object => ({
  cniVersion: '1.0.0',
  name: 'unbounded',
  plugins: [
    { type: CNI_PLUGIN, gate: true },
    {
      type: 'bridge',
      bridge: DEVICES.bridge,
      isGateway: true,
      isDefaultGateway: true,
      forceAddress: true,
      ipMasq: false,
      hairpinMode: true,
      mtu: plan.mtuBytes,
      ipam: { type: 'host-local', ranges: plan.podCidrs.map((subnet) => [{ subnet }]) },
    },
    { type: 'portmap', capabilities: { portMappings: true } },
    { type: CNI_PLUGIN },
  ],
});

const OTHERS = /\.(conf|conflist|json)$/;

/** Configurations of others in the folder: with one there, the node is served by another plug-in. */
export const foreignConfigs = (folder: string): string[] =>
  existsSync(folder)
    ? readdirSync(folder)
        .filter((name) => OTHERS.test(name) && name !== CNI_CONF_NAME)
        .sort()
    : [];

const MODES = { mode: 0o644, directoryMode: 0o755 };

/** Writes the configuration whole (the runtime may read at any moment), if it is not like that already. */
export const ensureCniConfig = (
  folder: string,
  plan: NodePlan,
  faults: StateFaults = createStateFaults(),
): Problem[] => {
  if (!plan.manageCni || plan.podCidrs.length === 0) return [];
  let foreign: readonly string[] = [];
  // Without knowing what is there ours is not written: the node may be served by another plug-in.
  const isKnown = faults.attempt(folder, () => {
    foreign = foreignConfigs(folder);
  });
  if (!isKnown) return [];
  if (foreign.length > 0) {
    return [
      {
        reason: 'ForeignCNIConfig',
        message: `${folder} holds ${foreign.join(', ')}: ours is not written; remove it, or set manageCniPlugin: false on the Site`,
      },
    ];
  }
  const file = join(folder, CNI_CONF_NAME);
  const text = `${JSON.stringify(cniConfig(plan), null, 2)}\n`;
  if (holds(file, text)) faults.settle(file);
  else faults.attempt(file, () => replaceFile(file, text, MODES));
  return [];
};

export const removeCniConfig = (folder: string): void => removeFile(join(folder, CNI_CONF_NAME));
