import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { until } from '@unbounded/testing';
import { binary } from '../../machine/paths.ts';
import { run } from '../../machine/command.ts';
import { createPodNetwork, PLACE, type PodNetwork, podStart } from './bridge-node.ts';
import { CONTROL_URL } from './control-server.ts';

/** A pod that is a device of a tailnet: a network namespace with a persistent TUN, and the process that carries its packets. */

export const DEVICE = 'ts0';

/** What the LocalAPI says of a device, as far as it is asked here. */
interface DeviceStatus {
  readonly BackendState: string;
  readonly TailscaleIPs: readonly string[] | null;
}

const askLocally = (socketPath: string, path: string, body?: string): Promise<string> =>
  new Promise((resolve, reject) => {
    const asked = request(
      {
        socketPath,
        path: `/localapi/v0/${path}`,
        method: body === undefined ? 'GET' : 'POST',
        headers: { host: 'local-tailscaled.sock' },
      },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('end', () => resolve(Buffer.concat(chunks).toString()));
      },
    );
    asked.on('error', reject);
    asked.end(body);
  });

export interface PodDevice {
  readonly hostName: string;
  readonly folder: string;
  readonly pid: number;
  /** What runs a program in the pod's network, before it. */
  readonly enter: readonly string[];
  /** Runs a program there. @throws CommandError */
  readonly inPod: (...argv: string[]) => string;
  /** Starts the process. @param key for a device without identity */
  begin(key?: string): void;
  /** {@link begin}, until the device is Running. */
  start(key?: string): Promise<void>;
  status(): Promise<DeviceStatus>;
  /** Logs in anew, as after its deletion. */
  logIn(key: string): Promise<void>;
  kill(): Promise<void>;
  /** What the process has written. */
  log(): string;
}

const RUNNING_WITHIN_MS = 15_000;

const untilRunning = async (name: string, ask: () => Promise<DeviceStatus>): Promise<void> => {
  const isRunning = async (): Promise<boolean> => {
    const { BackendState, TailscaleIPs } = await ask();
    return BackendState === 'Running' && (TailscaleIPs ?? []).length > 0;
  };
  await until(`device ${name} is Running`, isRunning, RUNNING_WITHIN_MS);
};

/** A pod at the bridge, with the TUN of its device. */
const createPod = (name: string, number: number): PodNetwork & Pick<PodDevice, 'inPod'> => {
  const network = createPodNetwork(name, number);
  const inPod = (...argv: string[]): string => run([...network.enter, ...argv]);
  inPod('ip', 'tuntap', 'add', 'dev', DEVICE, 'mode', 'tun');
  inPod('ip', 'link', 'set', DEVICE, 'mtu', '1280', 'up');
  return { ...network, inPod };
};

/** Makes the pod; its device is not started. @param number of the pod's address */
export const createPodDevice = (name: string, number: number): PodDevice => {
  const [folder, hostName] = [join(PLACE, name), `k8s-shop-${name}`];
  mkdirSync(folder, { mode: 0o700 });
  const pod = createPod(name, number);
  let child: ChildProcess | undefined;
  let log = '';
  const socket = join(folder, 'tailscaled.sock');
  const status = async (): Promise<DeviceStatus> => JSON.parse(await askLocally(socket, 'status')) as DeviceStatus;
  const begin = (key?: string): void => {
    if (key !== undefined) writeFileSync(join(folder, 'auth-key'), key, { mode: 0o600 });
    const argv = ['-dir', folder, '-control', CONTROL_URL, '-hostname', hostName];
    child = spawn(podStart, ['tun', pod.netns, DEVICE, binary('tailnet-device'), ...argv], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    child.stderr!.on('data', (data: Buffer) => (log += data.toString()));
  };
  return {
    ...{ ...pod, hostName, folder, status, begin },
    get pid() {
      return child!.pid!;
    },
    async start(key) {
      begin(key);
      await untilRunning(name, status);
    },
    async logIn(key) {
      await askLocally(socket, 'start', JSON.stringify({ AuthKey: key }));
      if ((await status()).BackendState === 'NeedsLogin') await askLocally(socket, 'login-interactive', '');
      await untilRunning(name, status);
    },
    async kill() {
      const ended = once(child!, 'exit');
      child!.kill('SIGKILL');
      await ended;
    },
    log: () => log,
  };
};

/** Of a process, as the kernel has them: bits of those in force and of those that it could get. */
export const capabilitiesOf = (pid: number): readonly string[] =>
  [...readFileSync(`/proc/${pid}/status`, 'utf8').matchAll(/^Cap(?:Inh|Prm|Eff|Amb):\s+(\w+)$/gm)].map(
    ([, bits]) => bits!,
  );
