import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { nodeCommand, V8_OPTIONS } from '@unbounded/config/node-command';
import { type DeviceUnit, TAILNET_INTERFACE } from '@unbounded/keeper-protocol';
import { z } from 'zod';
import type { Command } from '../process.ts';

/** Which programs are run for a device, and how. Only pod-start enters the pod's network namespace. */

export interface DevicePrograms {
  /** Path of pod-start. */
  readonly podStart: string;
  /** Path of tailnet-device. */
  readonly device: string;
  /** Where devices have their folders. */
  readonly devicesDir: string;
  /** PEM: authorities for the control server, besides those of the system; empty: none. */
  readonly caFile: string;
}

/** One that has a process. */
export type StartedUnit = DeviceUnit & { readonly device: NonNullable<DeviceUnit['device']> };
export const isStarted = (unit: DeviceUnit): unit is StartedUnit => unit.device !== undefined;

const isSource = import.meta.url.endsWith('.ts');
/** In the checkout the source itself, in the image the bundle beside the keeper's. */
const networkProgram = fileURLToPath(
  new URL(isSource ? './pod-network.process.ts' : './pod-network.process.mjs', import.meta.url),
);

const PATH = '/usr/bin:/bin';
/** In the checkout what Node has compiled is kept, as of the programs that tests start: half of the time of such a process. */
const { NODE_COMPILE_CACHE } = process.env;
const NETWORK_ENV = { PATH, ...(isSource && NODE_COMPILE_CACHE !== undefined ? { NODE_COMPILE_CACHE } : {}) };
const LONGEST_OUTPUT = 4096;
const NETWORK_WITHIN_MS = 10_000;

const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 16);

/** What a process was started with is in its name: one with other arguments is another process. */
export const processName = ({ podUID, netns, device }: StartedUnit): string =>
  `${podUID}.${digestOf(JSON.stringify([netns, device.hostName, device.controlURL]))}`;
export const podOf = (name: string): string => name.split('.')[0]!;

export const deviceCommand = (
  { podUID, netns, device: { hostName, controlURL } }: StartedUnit,
  { podStart, device, devicesDir, caFile }: DevicePrograms,
): Command => ({
  program: podStart,
  args: [
    ...['tun', netns, TAILNET_INTERFACE, device],
    ...['-dir', join(devicesDir, podUID), '-control', controlURL, '-hostname', hostName],
  ],
  env: { PATH, ...(caFile === '' ? {} : { SSL_CERT_FILE: caFile }) },
});

/** @throws Error with what it wrote */
const runInPod = (podStart: string, netns: string, args: readonly string[], input: string): Promise<string> =>
  new Promise((resolve, reject) => {
    const argv = ['network', netns, nodeCommand[0], ...V8_OPTIONS, networkProgram, ...args];
    const child = spawn(podStart, argv, { stdio: 'pipe', env: NETWORK_ENV, timeout: NETWORK_WITHIN_MS });
    let [output, problem] = ['', ''];
    child.stdout.on('data', (data: Buffer) => (output = (output + data.toString()).slice(0, LONGEST_OUTPUT)));
    child.stderr.on('data', (data: Buffer) => (problem = (problem + data.toString()).slice(0, LONGEST_OUTPUT)));
    child.stdin.on('error', () => undefined); // it ended before it read
    child.once('error', (error) => reject(new Error(`${podStart} cannot be run: ${error.message}`)));
    child.once('close', (code, signal) =>
      code === 0 ? resolve(output) : reject(new Error(problem.trim() || `ended by ${signal ?? `exit code ${code}`}`)),
    );
    child.stdin.end(input);
  });

const applied = z.object({ hasIPv6: z.boolean() });

/** @throws Error naming what could not be set up */
export const setUpNetwork = async (podStart: string, unit: DeviceUnit): Promise<z.output<typeof applied>> =>
  applied.parse(JSON.parse(await runInPod(podStart, unit.netns, [], JSON.stringify(unit))));

/** @throws Error naming what could not be removed */
export const takeNetworkAway = async (podStart: string, netns: string): Promise<void> => {
  await runInPod(podStart, netns, ['remove'], '');
};
