import { copyFileSync, existsSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { inNamespace, runAsync, tryRun } from '../machine/command.ts';
import { logTail, pidOf, startDaemon, stopDaemon } from '../machine/daemon.ts';
import { PLANS } from '../layout/addresses.ts';
import { API_SERVER_NAME, apiServerUrl, type LabLayout, namespaceOf, servicesOf } from '../layout/layout.ts';
import { binary, controlPlaneDir, state } from '../machine/paths.ts';
import { kubeconfigOf, openPki, type Pki, signCertificate } from './pki.ts';

/** etcd, kube-apiserver, kube-controller-manager and kube-scheduler, in the network namespace of the control-plane node. */

const COMPONENTS = [
  'kube-apiserver',
  'kube-controller-manager',
  'kube-scheduler',
  'kubelet',
  'kube-proxy',
  'kubectl',
] as const;
const START_DEADLINE_MS = 90_000;

/** Path of a Kubernetes program: a name of the one binary that holds them all. */
export const kubernetesProgram = (name: (typeof COMPONENTS)[number]): string => join(state, 'bin', name);

const linkPrograms = (): void => {
  mkdirSync(join(state, 'bin'), { recursive: true });
  for (const name of COMPONENTS) {
    rmSync(kubernetesProgram(name), { force: true });
    symlinkSync(binary('kubernetes'), kubernetesProgram(name));
  }
};

export const labPki = (): Pki => openPki(join(controlPlaneDir, 'pki'));
export const kubeconfigFile = (user: string): string => join(controlPlaneDir, `${user}.kubeconfig`);

const makeCredentials = (layout: LabLayout): Pki => {
  const pki = labPki();
  const { internalIps, external } = layout.controlPlane;
  const addresses = [...internalIps, ...external.ips, ...servicesOf(layout).map(({ apiServer }) => apiServer)];
  signCertificate(pki, 'apiserver', '/CN=kube-apiserver', [
    'DNS:kubernetes',
    'DNS:kubernetes.default',
    'DNS:kubernetes.default.svc',
    'DNS:kubernetes.default.svc.cluster.local',
    `DNS:${API_SERVER_NAME}`,
    'IP:127.0.0.1',
    ...addresses.map((ip) => `IP:${ip}`),
  ]);
  signCertificate(pki, 'kubelet-client', '/O=system:masters/CN=kube-apiserver-kubelet-client');
  signCertificate(pki, 'front-proxy', '/CN=front-proxy');
  const users: Record<string, string> = {
    admin: '/O=system:masters/CN=admin',
    'controller-manager': '/CN=system:kube-controller-manager',
    scheduler: '/CN=system:kube-scheduler',
  };
  for (const [user, subject] of Object.entries(users)) {
    signCertificate(pki, user, subject);
    writeFileSync(
      kubeconfigFile(user),
      kubeconfigOf(pki, apiServerUrl(layout, layout.controlPlane.site), { certificate: user }),
      { mode: 0o600 },
    );
  }
  copyFileSync(pki.file('ca', 'crt'), join(controlPlaneDir, 'ca.crt'));
  return pki;
};

const inControlPlane = (layout: LabLayout): string[] => inNamespace(namespaceOf(layout.controlPlane.name));

const etcdArguments = (): string[] => [
  binary('etcd'),
  '--name',
  'lab',
  '--data-dir',
  join(controlPlaneDir, 'etcd'),
  '--listen-client-urls',
  'http://127.0.0.1:2379',
  '--advertise-client-urls',
  'http://127.0.0.1:2379',
  '--listen-peer-urls',
  'http://127.0.0.1:2380',
  '--initial-advertise-peer-urls',
  'http://127.0.0.1:2380',
  '--initial-cluster',
  'lab=http://127.0.0.1:2380',
  '--unsafe-no-fsync',
  '--log-level',
  'warn',
];

const apiServerArguments = (layout: LabLayout, pki: Pki): string[] => [
  kubernetesProgram('kube-apiserver'),
  '--etcd-servers=http://127.0.0.1:2379',
  `--bind-address=${layout.families.includes(6) ? '::' : '0.0.0.0'}`,
  '--secure-port=6443',
  `--advertise-address=${layout.controlPlane.internalIp}`,
  `--service-cluster-ip-range=${layout.families.map((family) => PLANS[family].services.cidr).join(',')}`,
  '--authorization-mode=Node,RBAC',
  '--enable-admission-plugins=NodeRestriction',
  '--allow-privileged=true',
  `--client-ca-file=${pki.file('ca', 'crt')}`,
  `--tls-cert-file=${pki.file('apiserver', 'crt')}`,
  `--tls-private-key-file=${pki.file('apiserver', 'key')}`,
  `--kubelet-client-certificate=${pki.file('kubelet-client', 'crt')}`,
  `--kubelet-client-key=${pki.file('kubelet-client', 'key')}`,
  `--kubelet-certificate-authority=${pki.file('ca', 'crt')}`,
  '--kubelet-preferred-address-types=InternalIP',
  '--service-account-issuer=https://kubernetes.default.svc.cluster.local',
  `--service-account-key-file=${join(pki.dir, 'sa.pub')}`,
  `--service-account-signing-key-file=${pki.file('sa', 'key')}`,
  `--requestheader-client-ca-file=${pki.file('ca', 'crt')}`,
  '--requestheader-allowed-names=front-proxy',
  '--requestheader-username-headers=X-Remote-User',
  '--requestheader-group-headers=X-Remote-Group',
  '--requestheader-extra-headers-prefix=X-Remote-Extra-',
  `--proxy-client-cert-file=${pki.file('front-proxy', 'crt')}`,
  `--proxy-client-key-file=${pki.file('front-proxy', 'key')}`,
];

const controllerManagerArguments = (pki: Pki): string[] => {
  const config = kubeconfigFile('controller-manager');
  return [
    kubernetesProgram('kube-controller-manager'),
    `--kubeconfig=${config}`,
    `--authentication-kubeconfig=${config}`,
    `--authorization-kubeconfig=${config}`,
    `--service-account-private-key-file=${pki.file('sa', 'key')}`,
    `--root-ca-file=${pki.file('ca', 'crt')}`,
    `--cluster-signing-cert-file=${pki.file('ca', 'crt')}`,
    `--cluster-signing-key-file=${pki.file('ca', 'key')}`,
    '--use-service-account-credentials=true',
    '--allocate-node-cidrs=false',
    '--leader-elect=false',
  ];
};

const schedulerArguments = (): string[] => {
  const config = kubeconfigFile('scheduler');
  return [
    kubernetesProgram('kube-scheduler'),
    `--kubeconfig=${config}`,
    `--authentication-kubeconfig=${config}`,
    `--authorization-kubeconfig=${config}`,
    '--leader-elect=false',
  ];
};

const ensureDaemon = (layout: LabLayout, name: string, argv: readonly string[]): void => {
  if (pidOf(name) === undefined) startDaemon(name, [...inControlPlane(layout), ...argv]);
};

/** Prefix that runs kubectl as the lab's administrator. */
export const kubectlCommand = (layout: LabLayout): string[] => [
  ...inControlPlane(layout),
  kubernetesProgram('kubectl'),
  `--kubeconfig=${kubeconfigFile('admin')}`,
];
export const kubectl = (layout: LabLayout, args: readonly string[], input?: string): Promise<string> =>
  runAsync([...kubectlCommand(layout), ...args], input === undefined ? {} : { input });

const apiServerReady = (layout: LabLayout, pki: Pki): boolean =>
  tryRun([
    ...inControlPlane(layout),
    'curl',
    '-s',
    '--max-time',
    '2',
    '--cacert',
    pki.file('ca', 'crt'),
    '--cert',
    pki.file('admin', 'crt'),
    '--key',
    pki.file('admin', 'key'),
    `${apiServerUrl(layout, layout.controlPlane.site)}/readyz`,
  ]) === 'ok';

/** Starts (only) the API server; what else runs is left alone. */
export const startApiServer = async (layout: LabLayout): Promise<void> => {
  const pki = labPki();
  ensureDaemon(layout, 'kube-apiserver', apiServerArguments(layout, pki));
  for (const end = Date.now() + START_DEADLINE_MS; !apiServerReady(layout, pki);) {
    if (pidOf('kube-apiserver') === undefined) throw new Error(`kube-apiserver ended:\n${logTail('kube-apiserver')}`);
    if (Date.now() > end)
      throw new Error(`kube-apiserver is not ready after ${START_DEADLINE_MS / 1000} s:\n${logTail('kube-apiserver')}`);
    await delay(100);
  }
};

export const stopApiServer = (): Promise<void> => stopDaemon('kube-apiserver', 3000);

/** Prepares what nodes need to start (programs, certificates), before the API server answers. */
export const prepareControlPlane = (layout: LabLayout): void => {
  for (const program of ['kubernetes', 'etcd'].map(binary)) {
    if (!existsSync(program)) throw new Error(`${program} is missing: run tools/setup lab`);
  }
  mkdirSync(controlPlaneDir, { recursive: true });
  linkPrograms();
  makeCredentials(layout);
};

export const startControlPlane = async (layout: LabLayout): Promise<void> => {
  ensureDaemon(layout, 'etcd', etcdArguments());
  await startApiServer(layout);
  ensureDaemon(layout, 'kube-controller-manager', controllerManagerArguments(labPki()));
  ensureDaemon(layout, 'kube-scheduler', schedulerArguments());
};

/** Applies manifests (YAML or JSON text, several documents). */
export const applyManifests = async (layout: LabLayout, text: string): Promise<void> => {
  await kubectl(layout, ['apply', '--server-side', '--force-conflicts', '-f', '-'], text);
};
