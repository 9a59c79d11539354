import { type ChildProcess, spawn } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdtempSync, openSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import type { Cluster } from '@unbounded/kube';

import { assetsFolder } from './assets.ts';
import { SERVER_MEMORY } from './go-memory.ts';
import { copyPreparedEtcd, keepPreparedEtcd } from './prepared-etcd.ts';
import { makeSelfSigned } from './self-signed.ts';

/** The processes of a kube-apiserver and its etcd, on an address of loopback that nobody else has. */
export interface ServerProcess {
  /** Of its keys and data; kubectl and the kubeconfig of an administrator are in it. */
  readonly directory: string;
  readonly address: string;
  readonly cluster: Cluster;
  /** Kills the API server (etcd keeps the data); `start` brings it back at the same address. */
  kill(): Promise<void>;
  start(): Promise<void>;
  stop(): Promise<void>;
}

const ADMIN_TOKEN = 'test-admin-token';
const START_TIMEOUT_MS = 60_000;
const POLL_MS = 50;

/** Path of a program that tools/assets/build makes. @throws Error that says how to get it */
export const asset = (program: string): string => {
  const path = join(assetsFolder(), 'bin', program);
  if (!existsSync(path)) throw new Error(`${program} is not built: there is no ${path}; run tools/setup test`);
  return path;
};

const kubernetesBinary = (): string => asset('kubernetes');

/** UNBOUNDED_KUBE_APISERVER is the API server of another version: see kubernetes-versions.matrix.spec.ts. */
const apiServerBinary = (): string => process.env['UNBOUNDED_KUBE_APISERVER'] ?? kubernetesBinary();

const API_PORT = 6443;
export const ETCD_PORT = 2379;
const ETCD_PEER_PORT = 2380;
/** A pid is below 2^22 (PID_MAX_LIMIT of the kernel): the rest of 127.0.0.0/8 numbers the servers of one process. */
export const SERVERS_OF_A_PROCESS = 4;

const taken = new Set<string>();
/** An address of loopback that nobody else listens at, so that no port can be taken. @throws Error where four servers run */
const takeAddress = (): string => {
  for (let number = 0; number < SERVERS_OF_A_PROCESS; number++) {
    const host = process.pid * SERVERS_OF_A_PROCESS + number;
    const address = `127.${(host >> 16) & 255}.${(host >> 8) & 255}.${host & 255}`;
    if (taken.has(address)) continue;
    taken.add(address);
    return address;
  }
  throw new Error(`a process has addresses for ${SERVERS_OF_A_PROCESS} API servers at a time`);
};

/** A process that the kernel kills when we die, however we die. */
const spawnOwned = (command: string, args: readonly string[], log: string): ChildProcess =>
  spawn('setpriv', ['--pdeathsig', 'KILL', command, ...args], {
    stdio: ['ignore', openSync(log, 'a'), openSync(log, 'a')],
    env: { ...process.env, ...SERVER_MEMORY },
  });

const killAndWait = async (child: ChildProcess | undefined, signal: NodeJS.Signals = 'SIGKILL'): Promise<void> => {
  if (!child || child.exitCode !== null || child.signalCode !== null) return;
  child.kill(signal);
  await once(child, 'exit');
};

const writePki = (directory: string, address: string): void => {
  makeSelfSigned('kube-apiserver', {
    key: join(directory, 'server.key'),
    cert: join(directory, 'server.crt'),
    altNames: [`IP:${address}`, 'DNS:localhost'],
  });
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  writeFileSync(join(directory, 'sa.key'), privateKey.export({ type: 'pkcs1', format: 'pem' }));
  writeFileSync(join(directory, 'sa.pub'), publicKey.export({ type: 'spki', format: 'pem' }));
  writeFileSync(join(directory, 'tokens.csv'), `${ADMIN_TOKEN},admin,1,"system:masters"\n`);
};

/** A kubeconfig that uses this bearer token. */
export const writeKubeconfig = (
  path: string,
  { directory, address, token }: Pick<ServerProcess, 'directory' | 'address'> & { readonly token: string },
): void => {
  const ca = readFileSync(join(directory, 'server.crt')).toString('base64');
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'c', cluster: { server: `https://${address}:${API_PORT}`, 'certificate-authority-data': ca } }],
    users: [{ name: 'u', user: { token } }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
  };
  writeFileSync(path, JSON.stringify(config), { mode: 0o600 });
};

const apiServerFlags = (directory: string, address: string): string[] => [
  `--etcd-servers=http://${address}:${ETCD_PORT}`,
  `--bind-address=${address}`,
  `--advertise-address=${address}`,
  `--secure-port=${API_PORT}`,
  '--endpoint-reconciler-type=none',
  '--allow-privileged=true', // as clusters have it: what keeps pods from it is the chart's
  '--service-cluster-ip-range=10.96.0.0/16',
  '--authorization-mode=Node,RBAC',
  '--enable-admission-plugins=NodeRestriction',
  `--tls-cert-file=${join(directory, 'server.crt')}`,
  `--tls-private-key-file=${join(directory, 'server.key')}`,
  `--token-auth-file=${join(directory, 'tokens.csv')}`,
  '--service-account-issuer=https://kubernetes.default.svc.cluster.local',
  `--service-account-key-file=${join(directory, 'sa.pub')}`,
  `--service-account-signing-key-file=${join(directory, 'sa.key')}`,
];

const tail = (file: string): string => readFileSync(file, 'utf8').split('\n').slice(-15).join('\n');

const untilReady = async (cluster: Cluster, child: ChildProcess, log: string): Promise<void> => {
  const deadline = performance.now() + START_TIMEOUT_MS;
  for (;;) {
    if (child.exitCode !== null || child.signalCode !== null) throw new Error(`kube-apiserver ended:\n${tail(log)}`);
    try {
      // Covers the post-start hooks too, RBAC's default roles among them.
      await cluster.transport.sendText({ method: 'GET', path: '/readyz' });
      return;
    } catch (error) {
      if (performance.now() > deadline)
        throw new Error(`kube-apiserver is not ready after ${START_TIMEOUT_MS} ms:\n${tail(log)}`, { cause: error });
    }
    await sleep(POLL_MS);
  }
};

/** @param folder of its data */
const startEtcd = (folder: string, address: string, log: string): ChildProcess => {
  const urls = (flag: string, at: number) => [`--listen-${flag}-urls=http://${address}:${at}`];
  return spawnOwned(
    asset('etcd'),
    [
      '--name=test',
      `--data-dir=${folder}`,
      ...urls('client', ETCD_PORT),
      ...urls('peer', ETCD_PEER_PORT),
      `--advertise-client-urls=http://${address}:${ETCD_PORT}`,
      `--initial-advertise-peer-urls=http://${address}:${ETCD_PEER_PORT}`,
      `--initial-cluster=test=http://${address}:${ETCD_PEER_PORT}`,
      '--unsafe-no-fsync',
      '--log-level=warn',
    ],
    log,
  );
};

export const adminKubeconfig = (directory: string): string => join(directory, 'admin.kubeconfig');

/** @param flags more of kube-apiserver */
export const startServer = async (flags: readonly string[] = []): Promise<ServerProcess> => {
  const directory = mkdtempSync(join(tmpdir(), 'unbounded-api-'));
  const address = takeAddress();
  const log = join(directory, 'log');
  symlinkSync(apiServerBinary(), join(directory, 'kube-apiserver'));
  symlinkSync(kubernetesBinary(), join(directory, 'kubectl'));
  writePki(directory, address);
  const data = join(directory, 'etcd');
  const usualFlags = apiServerFlags('', ''); // wherever it is
  const isUsual = flags.length === 0 && apiServerBinary() === kubernetesBinary();
  const isPrepared = isUsual && copyPreparedEtcd(data, usualFlags);
  const openEtcd = (): ChildProcess => startEtcd(data, address, join(directory, 'etcd.log'));
  let etcd = openEtcd();
  writeKubeconfig(adminKubeconfig(directory), { directory, address, token: ADMIN_TOKEN });
  const { openCluster } = await import('@unbounded/kube/open-cluster'); // it takes half a second, which most specs need not
  const cluster = openCluster({ kubeconfig: adminKubeconfig(directory) });
  let server: ChildProcess | undefined;
  const start = async (): Promise<void> => {
    server = spawnOwned(join(directory, 'kube-apiserver'), [...apiServerFlags(directory, address), ...flags], log);
    await untilReady(cluster, server, log);
  };
  const stop = async (): Promise<void> => {
    cluster.close();
    await killAndWait(server);
    await killAndWait(etcd);
    taken.delete(address);
    rmSync(directory, { recursive: true, force: true });
  };
  const keepData = async (): Promise<void> => {
    await killAndWait(server);
    await killAndWait(etcd, 'SIGTERM');
    keepPreparedEtcd(data, usualFlags);
    etcd = openEtcd();
    await start();
  };
  try {
    await start();
    if (isUsual && !isPrepared) await keepData();
  } catch (error) {
    await stop();
    throw error;
  }
  return { directory, address, cluster, kill: () => killAndWait(server), start, stop };
};
