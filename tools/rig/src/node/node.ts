import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { imageFileOf, VERSION } from '@unbounded/oci/unbounded';
import { makeNodeCgroup } from '../machine/cgroups.ts';
import { kubernetesProgram, labPki } from '../substrate/cluster/control-plane.ts';
import { logTail, pidOf, startDaemon } from '../machine/daemon.ts';
import { imageFile, nodeDir, state, checkout, cniPlugins } from '../machine/paths.ts';
import { kubeconfigOf, signCertificate } from '../substrate/cluster/pki.ts';
import { PLANS } from '../layout/addresses.ts';
import {
  API_SERVER_NAME,
  apiServerIp,
  apiServerUrl,
  type LabLayout,
  type LabNode,
  namespaceOf,
  servicesOf,
} from '../layout/layout.ts';
import { run, tryRun } from '../machine/command.ts';

/**
 * One node in namespaces of its own, with containerd, kubelet and kube-proxy; in a lab without Kubernetes with nothing
 * but its own view of the file system.
 */

/** Folders that a node mounts its own upon; each must exist on the machine, so the missing ones are made and noted. */
const MOUNT_POINTS = [
  '/var/lib/kubelet',
  '/var/lib/containerd',
  '/var/lib/cni',
  '/var/lib/unbounded',
  '/var/log/pods',
  '/var/log/containers',
  '/etc/cni',
  '/etc/wireguard',
  '/etc/containerd',
  '/opt/cni',
] as const;
export const madeFoldersFile = join(state, 'made-folders');

/** Makes the missing mount points (deepest last) and notes them for `down`. */
export const makeMountPoints = (): void => {
  const made: string[] = existsSync(madeFoldersFile)
    ? readFileSync(madeFoldersFile, 'utf8').split('\n').filter(Boolean)
    : [];
  for (const folder of MOUNT_POINTS) {
    const missing: string[] = [];
    for (let at: string = folder; !existsSync(at); at = join(at, '..')) missing.unshift(at);
    made.push(...missing);
    writeFileSync(madeFoldersFile, made.join('\n')); // noted before it is made: an interrupted `up` leaves nothing unknown
    mkdirSync(folder, { recursive: true });
  }
};

/**
 * crun starts test pods a little faster, but Debian 12's refuses /dev/net/tun to pods that are not privileged (crun 1.5 to
 * 1.19 do; runc, but for 1.2.0 to 1.2.3, does not), and our agents make TUNs where the kernel has no WireGuard.
 */
const runtimeOf = ({ options }: LabLayout) =>
  options.agents === 'pods' ? { name: 'runc', program: '/usr/sbin/runc' } : { name: 'crun', program: '/usr/bin/crun' };

const containerdConfig = ({ name, program }: ReturnType<typeof runtimeOf>): string => `version = 2
oom_score = 0
[plugins.'io.containerd.grpc.v1.cri']
  sandbox_image = 'registry.k8s.io/pause:3.10.2'
  restrict_oom_score_adj = true
  [plugins.'io.containerd.grpc.v1.cri'.cni]
    bin_dir = '/opt/cni/bin'
    conf_dir = '/etc/cni/net.d'
  [plugins.'io.containerd.grpc.v1.cri'.containerd]
    default_runtime_name = '${name}'
    [plugins.'io.containerd.grpc.v1.cri'.containerd.runtimes.${name}]
      runtime_type = 'io.containerd.runc.v2'
      [plugins.'io.containerd.grpc.v1.cri'.containerd.runtimes.${name}.options]
        BinaryName = '${program}'
        SystemdCgroup = false
`;

const kubeletConfig = (layout: LabLayout, dir: string, caFile: string): object => ({
  apiVersion: 'kubelet.config.k8s.io/v1beta1',
  kind: 'KubeletConfiguration',
  authentication: { anonymous: { enabled: false }, webhook: { enabled: true }, x509: { clientCAFile: caFile } },
  authorization: { mode: 'Webhook' },
  tlsCertFile: join(dir, 'kubelet.crt'),
  tlsPrivateKeyFile: join(dir, 'kubelet.key'),
  clusterDomain: 'cluster.local',
  clusterDNS: [servicesOf(layout)[0]!.dns],
  containerRuntimeEndpoint: 'unix:///run/containerd/containerd.sock',
  cgroupDriver: 'cgroupfs',
  failCgroupV1: false,
  failSwapOn: false,
  protectKernelDefaults: true,
  resolvConf: join(state, 'resolv.conf'),
  imageGCHighThresholdPercent: 100,
  imageGCLowThresholdPercent: 99,
  evictionHard: {
    'memory.available': '100Mi',
    'nodefs.available': '1%',
    'imagefs.available': '1%',
    'nodefs.inodesFree': '1%',
  },
  nodeStatusUpdateFrequency: '5s',
  maxPods: 60,
});

const kubeProxyConfig = (layout: LabLayout, node: string, kubeconfig: string): object => ({
  apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
  kind: 'KubeProxyConfiguration',
  mode: 'nftables',
  hostnameOverride: node,
  clusterCIDR: layout.families.map((family) => PLANS[family].pods).join(','),
  clientConnection: { kubeconfig },
  // With nftables it is the primary address alone when nothing is said; those of gateways on the WAN are others.
  nodePortAddresses: ['0.0.0.0/0', '::/0'],
  // These would be set for the whole machine.
  conntrack: { maxPerCore: 0, min: 0, tcpEstablishedTimeout: '0s', tcpCloseWaitTimeout: '0s' },
});

const writeNodeFiles = (layout: LabLayout, node: LabNode): void => {
  const dir = nodeDir(node.name);
  mkdirSync(dir, { recursive: true });
  const pki = labPki();
  const server = apiServerUrl(layout, node.site);
  signCertificate(pki, `kubelet-${node.name}`, `/O=system:nodes/CN=system:node:${node.name}`, [
    `DNS:${node.name}`,
    ...node.internalIps.map((ip) => `IP:${ip}`),
  ]);
  signCertificate(pki, `kube-proxy-${node.name}`, '/CN=system:kube-proxy');
  for (const kind of ['crt', 'key'] as const)
    copyFileSync(pki.file(`kubelet-${node.name}`, kind), join(dir, `kubelet.${kind}`));
  const write = (name: string, text: string): void => writeFileSync(join(dir, name), text, { mode: 0o600 });
  write('kubelet.kubeconfig', kubeconfigOf(pki, server, { certificate: `kubelet-${node.name}` }));
  write('kube-proxy.kubeconfig', kubeconfigOf(pki, server, { certificate: `kube-proxy-${node.name}` }));
  write('hosts', `127.0.0.1 localhost\n::1 localhost\n${apiServerIp(layout, node.site)} ${API_SERVER_NAME}\n`);
  write('containerd.toml', containerdConfig(runtimeOf(layout)));
  write('kubelet.yaml', JSON.stringify(kubeletConfig(layout, dir, pki.file('ca', 'crt'))));
  write('kube-proxy.yaml', JSON.stringify(kubeProxyConfig(layout, node.name, join(dir, 'kube-proxy.kubeconfig'))));
};

const nodeLabels = (node: LabNode): string => `unbounded-lab/role=${node.role}`;

const daemonName = (node: string): string => `node-${node}`;

/** What node-init.sh needs to run Kubernetes on the node. */
const kubernetesEnvironment = (node: LabNode, ours: readonly string[]): Record<string, string> => {
  const images = ['pause', 'probe', ...(node.role === 'control-plane' ? ['coredns'] : [])].map(imageFile);
  return {
    NODE_IP: node.internalIps.join(','),
    IMAGES: [...images, ...ours].join(' '),
    BIN: join(kubernetesProgram('kubelet'), '..'),
    LABELS: nodeLabels(node),
  };
};

const imagesOf = ({ options }: LabLayout): string[] => (options.agents === 'pods' ? [imageFileOf(VERSION)] : []);

/**
 * Starts the node; kubelet waits until {@link markReady}. Running nodes are left alone.
 * @param ours images of our programs: tars
 */
export const startNode = (layout: LabLayout, node: LabNode, ours: readonly string[] = imagesOf(layout)): void => {
  if (pidOf(daemonName(node.name)) !== undefined) return;
  if (layout.options.fabric) mkdirSync(nodeDir(node.name), { recursive: true });
  else writeNodeFiles(layout, node);
  const join1 = makeNodeCgroup(node.name)
    .map((file) => `echo $$ >${file};`)
    .join(' ');
  const unshare = 'unshare --mount --uts --ipc --pid --cgroup --fork --kill-child --mount-proc';
  const script = `${join1} exec nsenter --net=/run/netns/${namespaceOf(node.name)} -- ${unshare} ${join(checkout, 'tools/rig/node-init.sh')}`;
  startDaemon(daemonName(node.name), ['bash', '-c', script], {
    env: {
      PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
      NODE: node.name,
      DIR: nodeDir(node.name),
      CNI_PLUGINS: cniPlugins,
      ...(layout.options.fabric ? {} : kubernetesEnvironment(node, ours)),
    },
  });
};

/** Lets the nodes' kubelets start: the API server answers. */
export const markReady = (): void => writeFileSync(join(state, 'control-plane/ready'), '');

/** Pid (of the machine) of the node's first process. @throws Error when the node does not run */
export const initPid = (node: string): number => {
  const outer = pidOf(daemonName(node));
  const children = outer === undefined ? '' : readFileSync(`/proc/${outer}/task/${outer}/children`, 'utf8');
  const pid = Number(children.trim().split(' ')[0]);
  if (!pid) throw new Error(`node ${node} does not run:\n${logTail(daemonName(node))}`);
  return pid;
};

/** Where a file of the node's own folders is on the machine. */
export const nodeFile = (node: string, path: string): string => join(nodeDir(node), 'root', path);

/** Prefix that runs a command as if logged in to the node. */
export const inNode = (node: string): string[] => [
  'nsenter',
  '-t',
  String(initPid(node)),
  '-m',
  '-u',
  '-i',
  '-n',
  '-p',
  '-C',
  '--',
];

export const onNode = (node: string, ...argv: string[]): string => run([...inNode(node), ...argv]);
export const tryOnNode = (node: string, ...argv: string[]): string | undefined => tryRun([...inNode(node), ...argv]);
