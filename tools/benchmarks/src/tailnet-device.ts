import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { openSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { nodeCommand } from '@unbounded/config/node-command';
import { formatPrefix } from '@unbounded/ip';
import { deviceUnit, TAILNET_INTERFACE } from '@unbounded/keeper-protocol';
import { runAsync } from '@unbounded/rig/command';
import { binary, checkout } from '@unbounded/rig/paths';
import { podStart } from '@unbounded/rig/tailnet-bridge-node';
import { CONTROL_URL } from '@unbounded/rig/tailnet-control-server';
import { planPodRoutes } from '@unbounded/tailnet';
import { addressesOf, untilRunning } from './tailnet-local-api.ts';
import type { Pod } from './tailnet-node.ts';

/** A pod's device: ours as the keeper starts it, and a stock tailscaled as a sidecar that may change the pod's network. */

export interface Device {
  readonly pod: Pod;
  readonly hostName: string;
  readonly socket: string;
  readonly pid: number;
  /** What stands before the process: interface, rules and routes. Nothing for a tailscaled, which makes them itself. */
  prepare(): Promise<void>;
  /** @param key for one without identity. @returns milliseconds until it is Running */
  start(key?: string): Promise<number>;
  /** Once it is Running: its addresses. @returns the IPv4 one */
  address(): Promise<string>;
  kill(): Promise<void>;
}
export type MakeDevice = (pod: Pod) => Device;

const RUNNING_WITHIN_MS = 30_000;
const ENVIRONMENT = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' };

/** What differs between the two. */
interface Kind {
  readonly argv: readonly string[];
  readonly prepare: (addresses: readonly string[]) => Promise<void>;
  readonly giveKey: (key?: string) => void;
}

const createDevice = (pod: Pod, hostName: string, { argv, prepare, giveKey }: Kind): Device => {
  const socket = join(pod.folder, 'tailscaled.sock');
  let child: ChildProcess | undefined;
  return {
    ...{ pod, hostName, socket },
    get pid() {
      return child!.pid!;
    },
    prepare: () => prepare([]),
    async start(key) {
      giveKey(key);
      const log = openSync(join(pod.folder, 'log'), 'a');
      const env = { ...ENVIRONMENT, HOME: pod.folder };
      const began = performance.now();
      child = spawn(argv[0]!, argv.slice(1), { stdio: ['ignore', log, log], env });
      await untilRunning(socket, RUNNING_WITHIN_MS);
      return performance.now() - began;
    },
    async address() {
      const addresses = await addressesOf(socket);
      await prepare(addresses);
      return addresses.find((address) => !address.includes(':'))!;
    },
    async kill() {
      const ended = once(child!, 'exit');
      child!.kill('SIGKILL');
      await ended;
    },
  };
};

const hostNameOf = (pod: Pod): string => `k8s-shop-${pod.name}`;

/** The keeper's own. */
const networkProgram = join(checkout, 'apps/node-keeper/dist/pod-network.process.mjs');
const CLUSTER_FIRST = planPodRoutes({ cluster: [] });
const rules = CLUSTER_FIRST.rules.map((rule) => ({ ...rule, to: formatPrefix(rule.to) }));
const routes = CLUSTER_FIRST.routes.map(({ to, kind, metric }) => ({
  ...{ to: formatPrefix(to), kind, metric },
  table: CLUSTER_FIRST.rules[0]!.table,
}));

export const ours: MakeDevice = (pod) => {
  const { netns, folder } = pod;
  const hostName = hostNameOf(pod);
  const options = ['-dir', folder, '-control', CONTROL_URL, '-hostname', hostName];
  return createDevice(pod, hostName, {
    argv: [podStart, 'tun', netns, TAILNET_INTERFACE, binary('tailnet-device'), ...options],
    async prepare(addresses) {
      const network = { addresses: [...addresses], rules, routes };
      const input = deviceUnit.format({ podUID: pod.name, netns, network });
      await runAsync([podStart, 'network', netns, ...nodeCommand, networkProgram], { input });
    },
    giveKey(key) {
      if (key !== undefined) writeFileSync(join(folder, 'auth-key'), key, { mode: 0o600 });
    },
  });
};

export const stock: MakeDevice = (pod) => {
  const { enter, folder } = pod;
  const hostName = hostNameOf(pod);
  const config = join(folder, 'config.json');
  const files = [`--statedir=${folder}`, `--state=${folder}/tailscaled.state`, `--socket=${folder}/tailscaled.sock`];
  return createDevice(pod, hostName, {
    argv: [
      ...[...enter, binary('tailscaled'), `--tun=${TAILNET_INTERFACE}`, '--port=0', '--no-logs-no-support'],
      ...[...files, `--config=${config}`],
    ],
    prepare: async () => undefined,
    giveKey(key) {
      const login = { ServerURL: CONTROL_URL, Hostname: hostName, ...(key === undefined ? {} : { AuthKey: key }) };
      const settings = { acceptDNS: false, acceptRoutes: false, NetfilterMode: 'off' };
      writeFileSync(config, JSON.stringify({ Version: 'alpha0', Locked: false, ...login, ...settings }), {
        mode: 0o600,
      });
    },
  });
};
