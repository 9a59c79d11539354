import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CNI_CONF_NAME, RUN_FOLDER } from '@unbounded/config/ownership';
import { runAsync } from '../../machine/command.ts';
import { pidOf, startDaemon } from '../../machine/daemon.ts';
import type { LabLayout, LabNode } from '../../layout/layout.ts';
import { initPid, inNode } from '../../node/node.ts';
import { binary, state } from '../../machine/paths.ts';
import { type Pod, PROBES } from '../../checks/test-pod.ts';
import { familyOf } from '../../layout/addresses.ts';

/**
 * Pods of a lab without Kubernetes: network namespaces of their node, plugged in by the list of CNI plugins that the
 * agent wrote, called as a container runtime calls them (CNI 1.0.0).
 */

const podsFile = join(state, 'pods.json');

export const readPods = (): Pod[] =>
  existsSync(podsFile) ? (JSON.parse(readFileSync(podsFile, 'utf8')) as Pod[]) : [];

/** Where a namespace is, on its node. */
const namespacePath = (pod: string): string => `/run/netns/${pod}`;

/** Runs a command in the pod's network namespace, with the files of its node. */
export const podCommand = ({ node, name }: Pick<Pod, 'node' | 'name'>, argv: readonly string[]): string[] => [
  ...inNode(node),
  'nsenter',
  `--net=${namespacePath(name)}`,
  '--',
  ...argv,
];

/** The list of plugins, as the agent of the node wrote it: on the node's own tmpfs. */
export const cniListFile = (node: string): string => join(`/proc/${initPid(node)}/root`, RUN_FOLDER, CNI_CONF_NAME);

interface CniList {
  readonly cniVersion: string;
  readonly name: string;
  readonly plugins: readonly { readonly type: string }[];
}

interface CniResult {
  readonly ips: readonly { readonly address: string }[];
}

/** "Try again later" of the CNI specification (1.1.0, section "Error"), as the plugin prints it. */
const TRY_AGAIN = '"code":11';
/** Kubelet repeats without end. What is refused so often is refused for another reason than a slow machine. */
const ATTEMPTS = 4;

/** As a runtime does, a plugin that cannot yet is called again. @throws CommandError */
const callPlugin = async (argv: readonly string[], input: string): Promise<string> => {
  for (let attempt = 1; ; attempt++) {
    try {
      return await runAsync(argv, { input });
    } catch (error) {
      if (attempt === ATTEMPTS || !(error as Error).message.includes(TRY_AGAIN)) throw error;
    }
  }
};

/** Calls every plugin of the list with the result of the one before. */
const addToNetwork = async (node: string, pod: string): Promise<CniResult> => {
  const { cniVersion, name, plugins } = JSON.parse(readFileSync(cniListFile(node), 'utf8')) as CniList;
  const variables = {
    CNI_COMMAND: 'ADD',
    CNI_CONTAINERID: pod,
    CNI_NETNS: namespacePath(pod),
    CNI_IFNAME: 'eth0',
    CNI_ARGS: `IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=${pod};K8S_POD_UID=${pod}`,
    CNI_PATH: '/opt/cni/bin',
  };
  const env = Object.entries(variables).map(([key, value]) => `${key}=${value}`);
  let prevResult: CniResult | undefined;
  for (const plugin of plugins) {
    const input = JSON.stringify({ ...plugin, cniVersion, name, ...(prevResult && { prevResult }) });
    const argv = [...inNode(node), 'env', ...env, `/opt/cni/bin/${plugin.type}`];
    prevResult = JSON.parse(await callPlugin(argv, input)) as CniResult;
  }
  return prevResult ?? { ips: [] };
};

const plugPod = async ({ name: node, site }: LabNode, name: string): Promise<Pod> => {
  await runAsync([...inNode(node), 'ip', 'netns', 'add', name]);
  await runAsync(podCommand({ node, name }, ['ip', 'link', 'set', 'lo', 'up']));
  const ips = (await addToNetwork(node, name)).ips.map(({ address }) => address.split('/')[0]!);
  return { name, node, site, ips, ip: ips[0]! };
};

/** Two on a worker, for the way from pod to pod on a node; one on a gateway. */
const podNames = ({ name, role }: LabNode): string[] =>
  PROBES.slice(0, role === 'gateway' ? 1 : PROBES.length).map((probe) => `${probe}-${name}`);

/** How many pods there should be. */
export const podCount = (layout: LabLayout): number => layout.nodes.flatMap(podNames).length;

/** Makes the pods that are not there yet and starts what answers in them. */
export const startPods = async (layout: LabLayout): Promise<void> => {
  const pods = readPods();
  const plugOn = async (node: LabNode): Promise<void> => {
    for (const name of podNames(node)) {
      if (pods.some((pod) => pod.name === name)) continue;
      pods.push(await plugPod(node, name));
      writeFileSync(podsFile, JSON.stringify(pods));
    }
  };
  await Promise.all(layout.nodes.map(plugOn));
  for (const pod of pods) {
    const daemon = `pod-${pod.name}`;
    if (pidOf(daemon) === undefined) startDaemon(daemon, podCommand(pod, [binary('probe'), 'serve']));
  }
};

/** With those of their addresses that the lab's pods are to have: objects of other families may have come since. */
export const podsOf = ({ families }: LabLayout): Pod[] =>
  readPods().flatMap((pod) => {
    const ips = pod.ips.filter((ip) => families.includes(familyOf(ip)));
    return ips[0] === undefined ? [] : [{ ...pod, ips, ip: ips[0] }];
  });

export const probeCommand = (pod: Pod): string[] => podCommand(pod, [binary('probe')]);
