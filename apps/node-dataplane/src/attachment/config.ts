import { existsSync, readdirSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { CNI_CONF_NAME } from '@unbounded/config/ownership';
import { formatAddress, lastAddress, parsePrefix } from '@unbounded/ip';
import { holds, removeFile, replaceFile, replaceLink } from '@unbounded/state-files';
import { echoAddress, type NodePlan, type Problem } from '@unbounded/topology';
import { createStateFaults, type StateFaults } from '../state/state-faults.ts';
import { POD_BRIDGE } from './pod-bridge.ts';

/** The CNI configuration: kubelet's runtime calls the plug-ins of this list for every pod. */

/** Name of our binary in the CNI folder. */
export const CNI_PLUGIN = 'unbounded-cni';

/**
 * The capability by which a container runtime passes the annotations of a pod to a plug-in (containerd from 1.5 on, CRI-O from 1.29 on). A
 * runtime without it ignores it.
 */
export const POD_ANNOTATIONS = 'io.kubernetes.cri.pod-annotations';

type PodsPlan = Pick<NodePlan, 'manageCni' | 'mtuBytes' | 'podCidrs'>;

/** host-local leaves out the first and the last address with IPv4; with IPv6 the last one, which echoes have, must be said. */
const rangeOf = (subnet: string): object => {
  const block = parsePrefix(subnet);
  if (block.family === 4 || !echoAddress(block)) return { subnet };
  const { family, value } = lastAddress(block);
  return { subnet, rangeEnd: formatAddress({ family, value: value - 1n }) };
};

/** The list (CNI 1.0.0). host-local owns the addresses; ours is the last, where it learns of the pod. */
const cniConfig = (plan: PodsPlan): object => ({
  cniVersion: '1.0.0',
  name: 'unbounded',
  plugins: [
    {
      type: 'bridge',
      bridge: POD_BRIDGE,
      isGateway: true,
      isDefaultGateway: true,
      forceAddress: true,
      ipMasq: false,
      hairpinMode: true,
      mtu: plan.mtuBytes,
      ipam: { type: 'host-local', ranges: plan.podCidrs.map((subnet) => [rangeOf(subnet)]) },
    },
    { type: 'portmap', capabilities: { portMappings: true } },
    { type: CNI_PLUGIN, capabilities: { [POD_ANNOTATIONS]: true } },
  ],
});

const OTHERS = /\.(conf|conflist|json)$/;

/** Configurations of others in the folder: with one there, the node is served by another plug-in. */
const foreignConfigs = (folder: string): string[] =>
  existsSync(folder)
    ? readdirSync(folder)
        .filter((name) => OTHERS.test(name) && name !== CNI_CONF_NAME)
        .sort()
    : [];

/** Where a container runtime looks for the list, and where the list is. */
export interface CniConfigFolders {
  readonly configurations: string;
  /** Empty after a boot. */
  readonly volatile: string;
}

/** Our list in its volatile directory: absent from a boot until a plan is applied. */
export const listFile = (volatile: string): string => join(volatile, CNI_CONF_NAME);

const MODES = { mode: 0o644, directoryMode: 0o755, durable: false };

const leadsTo = (link: string): string | undefined => {
  try {
    return readlinkSync(link);
  } catch {
    return undefined; // absent, or a file of its own
  }
};

/** A runtime watches the folder of the link: a new link tells it of a new list. */
const writeList = (link: string, file: string, text: string): void => {
  replaceFile(file, text, MODES);
  replaceLink(link, file, MODES.directoryMode);
};

/** The link first: what it leads to is in use until then. */
const remove = (link: string, file: string): void => {
  removeFile(link);
  removeFile(file);
};

const foreignProblem = (folder: string, foreign: readonly string[], isInUse: boolean): Problem => {
  const names = foreign.join(', ');
  const message = isInUse
    ? `${folder} holds ${names} beside ours: the container runtime takes the first by name; remove it, or set manageCniPlugin: false on the Site`
    : `${folder} holds ${names}: ours is not written; remove it, or set manageCniPlugin: false on the Site`;
  return { reason: 'ForeignCNIConfig', message };
};

/**
 * Writes the configuration whole (the runtime may read at any moment), if it is not like that already. What stands in the runtime's folder
 * outlives a boot, and is a link to a file that does not: after a boot the runtime has no network for pods, and the node is NotReady,
 * until a plan is applied again. Else the plug-ins of the list would make a bridge of their own before.
 *
 * Beside one of another plug-in ours is not begun with, but goes on as it should be where it is in use. Where pods are another plug-in's
 * (`manageCniPlugin: false`) ours goes once that plug-in's is there, or once it leads nowhere, with which the runtime would take none.
 */
export const ensureCniConfig = (
  { configurations: folder, volatile }: CniConfigFolders,
  plan: PodsPlan,
  faults: StateFaults = createStateFaults(),
): Problem[] => {
  const [link, file] = [join(folder, CNI_CONF_NAME), listFile(volatile)];
  const isOurs = leadsTo(link) === file;
  if (plan.manageCni ? plan.podCidrs.length === 0 : !isOurs) return [];
  let foreign: readonly string[] = [];
  // Without knowing what is there ours is not written: the node may be served by another plug-in.
  const isKnown = faults.attempt(folder, () => {
    foreign = foreignConfigs(folder);
  });
  if (!isKnown) return [];
  if (!plan.manageCni) {
    if (foreign.length > 0 || !existsSync(file)) faults.attempt(link, () => remove(link, file));
    return [];
  }
  const problems = foreign.length === 0 ? [] : [foreignProblem(folder, foreign, isOurs)];
  if (foreign.length > 0 && !isOurs) return problems;
  const text = `${JSON.stringify(cniConfig(plan), null, 2)}\n`;
  if (isOurs && holds(file, text)) faults.settle(link);
  else faults.attempt(link, () => writeList(link, file, text));
  return problems;
};

export const removeCniConfig = ({ configurations, volatile }: CniConfigFolders): void => {
  remove(join(configurations, CNI_CONF_NAME), listFile(volatile));
};
