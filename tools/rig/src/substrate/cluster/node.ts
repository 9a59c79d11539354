import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { kubernetesProgram, labPki } from '../../kubernetes/control-plane.ts';
import { kubeconfigOf, signCertificate } from '../../kubernetes/pki.ts';
import { PLANS } from '../../layout/addresses.ts';
import {
  API_SERVER_NAME,
  apiServerIp,
  apiServerUrl,
  type LabLayout,
  type LabNode,
  servicesOf,
} from '../../layout/layout.ts';
import { nodeDir, state } from '../../machine/paths.ts';
import { isRunning, startNode } from '../../node/node.ts';
import { imageStore } from './image-store.ts';

/** A node of a cluster: with containerd, kubelet and kube-proxy. */

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

/** What node-init.sh needs to run Kubernetes on the node. */
const kubernetesEnvironment = (node: LabNode): Record<string, string> => ({
  NODE_IP: node.internalIps.join(','),
  IMAGE_STORE: imageStore,
  BIN: join(kubernetesProgram('kubelet'), '..'),
  LABELS: nodeLabels(node),
});

/** Starts the node; kubelet waits until {@link markReady}. Running nodes are left alone. */
export const startClusterNode = (layout: LabLayout, node: LabNode): void => {
  if (isRunning(node.name)) return;
  writeNodeFiles(layout, node);
  startNode(layout, node.name, kubernetesEnvironment(node));
};

/** Lets the nodes' kubelets start: the API server answers. */
export const markReady = (): void => writeFileSync(join(state, 'control-plane/ready'), '');
