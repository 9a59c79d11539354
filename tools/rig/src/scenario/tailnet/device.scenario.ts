/**
 * Two pods of one node that are devices of a tailnet, in namespaces of the process's own (device.matrix.spec.ts): what reaches what, and
 * what stays when the device's process dies, its device is deleted, or the control server lies or is away. Prints what it saw as JSON.
 */
import { spawn } from 'node:child_process';
import { existsSync, readdirSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { until } from '@unbounded/testing';
import { binary } from '../../machine/paths.ts';
import { run, tryRun } from '../../machine/command.ts';
import { type ControlServer, startControlServer } from './control-server.ts';
import { makeNode, PLACE } from './bridge-node.ts';
import { firstAnswer, gapDuring } from './ping-times.ts';
import { capabilitiesOf, createPodDevice, DEVICE, type PodDevice } from './pod-device.ts';

export interface Report {
  readonly addresses: readonly (readonly string[])[];
  /** ICMP, UDP and TCP from one to the other. */
  readonly reached: { readonly ping: boolean; readonly echoesLost: number; readonly bytes: number };
  readonly keysLeft: readonly boolean[];
  readonly process: {
    readonly capabilities: readonly string[];
    readonly isInNodeNamespace: boolean;
    readonly listensTo: string;
  };
  /** Addresses, rules and routes of the node: before the devices, and with them. */
  readonly node: readonly [string, string];
  /** The same of a pod, before and after the control server sent hostile maps. */
  readonly pod: readonly [string, string];
  /** After kill -9: the interface before and after, and of a TCP server that listened all the while whether it is reached again. */
  readonly killed: {
    readonly link: readonly [string, string];
    readonly addresses: readonly string[];
    readonly served: boolean;
    /** The longest time without an answer, milliseconds: of pings to it, of its own, and when both devices are killed at once. */
    readonly gapsMs: Readonly<Record<'to' | 'from' | 'both', number>>;
  };
  /** Of a device that has no key yet: its state, how often it asked to be registered, and its addresses once it has one. */
  readonly withoutKey: { readonly state: string; readonly asked: number; readonly addresses: readonly string[] };
  /** New devices, two and two of which begin to talk at the same moment: until each has an answer, milliseconds. */
  readonly contactsMs: readonly number[];
  /** Killed and started again while the control server is away. */
  readonly withoutControl: { readonly addresses: readonly string[]; readonly reached: boolean };
  /** Deleted at the control server, and logged in by another key. */
  readonly loggedInAgain: { readonly addresses: readonly string[]; readonly names: readonly string[] };
  /** Keys that stand in a log. */
  readonly leaked: boolean;
  /** What was made in the machine's folders for state. */
  readonly elsewhere: readonly string[];
}

const TAGS = ['tag:k8s-pod'];
const SERVER_PORT = '9100';
/** One that asked would have done so several times. */
const KEYLESS_MS = 4000;
/** Of two that begin at once one in four meets. */
const PAIRS = 10;

const kernelState = (show: (...argv: string[]) => string): string =>
  [['-o', 'addr'], ['rule'], ['-6', 'rule'], ['route', 'show', 'table', 'all'], ['-6', 'route', 'show', 'table', 'all']]
    .map((argv) => show('ip', ...argv).replaceAll(/valid_lft \S+ preferred_lft \S+|expires \S+/g, ''))
    .join('\n');

const addressesOf = async (device: PodDevice): Promise<readonly string[]> => (await device.status()).TailscaleIPs ?? [];

/** As whoever made the TUN does: the device's addresses, and the tailnet's blocks by it. */
const applyAddresses = async (device: PodDevice): Promise<void> => {
  for (const address of await addressesOf(device))
    device.inPod('ip', 'addr', 'add', `${address}/${address.includes(':') ? 128 : 32}`, 'dev', DEVICE, 'nodad');
  device.inPod('ip', 'route', 'add', '100.64.0.0/10', 'dev', DEVICE);
  device.inPod('ip', '-6', 'route', 'add', 'fd7a:115c:a1e0::/48', 'dev', DEVICE);
};

const reaches = (from: PodDevice, address: string): boolean =>
  tryRun([...from.enter, 'ping', '-c3', '-i0.2', '-W2', address]) !== undefined;
const untilReached = async (from: PodDevice, address: string): Promise<boolean> => {
  for (let attempt = 0; attempt < 20; attempt++) {
    if (reaches(from, address)) return true;
    await delay(200);
  }
  return false;
};

/** A server of UDP and TCP in the pod. */
const serve = async ({ enter }: PodDevice): Promise<void> => {
  const argv = ['--pdeathsig', 'KILL', ...enter, binary('probe'), 'peer', SERVER_PORT];
  const child = spawn('setpriv', argv, { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(child.stdout, 'data');
};

const tryPackets = (from: PodDevice, address: string): Report['reached'] => {
  const to = `${address}:${SERVER_PORT}`;
  const { lost } = JSON.parse(from.inPod(binary('probe'), 'roundtrip', to, '200')) as { lost: number };
  const { bytes } = JSON.parse(from.inPod(binary('probe'), 'bulk', to, '500')) as { bytes: number };
  return { ping: reaches(from, address), echoesLost: lost, bytes };
};

const linkOf = (device: PodDevice): string =>
  device
    .inPod('ip', '-o', 'addr', 'show', 'dev', DEVICE, 'scope', 'global')
    .replaceAll(/valid_lft.*/g, '')
    .trim();

const processOf = ({ pid }: PodDevice): Report['process'] => ({
  capabilities: capabilitiesOf(pid),
  isInNodeNamespace: readlinkSync(`/proc/${pid}/ns/net`) === readlinkSync('/proc/self/ns/net'),
  listensTo: run(['ss', '-Hlntp'])
    .split('\n')
    .filter((line) => line.includes('tailnet-device'))
    .join('\n'),
});

/** Routes to the pods' block and to everything, one route for all of 100.64.0.0/10, and a peer with a pod's address. */
const lieTo = async (device: PodDevice, control: ControlServer): Promise<Report['pod']> => {
  const before = kernelState(device.inPod);
  const routes = ['10.1.0.0/24', '0.0.0.0/0'];
  await control.tell({ routes, oneCgnat: true, peerAddress: '10.1.0.11/32', cacheNetworkMaps: true });
  await delay(1000);
  const after = kernelState(device.inPod);
  await control.tell({ cacheNetworkMaps: true });
  return [before, after];
};

/** @param observer another device, of which this one's TCP server is asked */
const killAndStart = async (device: PodDevice, observer: PodDevice, address: string): Promise<Report['killed']> => {
  const before = linkOf(device);
  await device.kill();
  const after = linkOf(device);
  await device.start();
  const served = (await untilReached(observer, address)) && tryPackets(observer, address).bytes > 0;
  const addresses = await addressesOf(device);
  return { link: [before, after], addresses, served, gapsMs: await gapsOf(device, observer) };
};

const gapsOf = async (device: PodDevice, observer: PodDevice): Promise<Report['killed']['gapsMs']> => {
  const again = async (...devices: readonly PodDevice[]): Promise<void> => {
    await Promise.all(devices.map((one) => one.kill()));
    await Promise.all(devices.map((one) => one.start()));
  };
  const [to, from] = [(await addressesOf(device))[0]!, (await addressesOf(observer))[0]!];
  return {
    to: await gapDuring(observer, to, () => again(device)),
    from: await gapDuring(device, from, () => again(device)),
    both: await gapDuring(observer, to, () => again(device, observer)),
  };
};

const startWithoutKey = async (control: ControlServer): Promise<Report['withoutKey']> => {
  const device = createPodDevice('keyless', 60);
  device.begin();
  await until('the device answers', () => device.status());
  await delay(KEYLESS_MS);
  const { BackendState: state } = await device.status();
  const asked = device.log().split('RegisterReq').length - 1;
  await device.logIn(await control.createKey(TAGS));
  const addresses = await addressesOf(device);
  await device.kill();
  await control.deleteDevice(device.hostName);
  return { state, asked, addresses };
};

/** Two devices that begin to talk at the same moment. */
const contactOf = async (number: number, control: ControlServer): Promise<readonly number[]> => {
  const pair = [0, 1].map((side) => createPodDevice(`pair-${number}-${side}`, 20 + 2 * number + side));
  await Promise.all(pair.map(async (device) => device.start(await control.createKey(TAGS))));
  await Promise.all(pair.map(applyAddresses));
  const addresses = await Promise.all(pair.map(async (device) => (await addressesOf(device))[0]!));
  const answered = await Promise.all(pair.map((device, side) => firstAnswer(device, addresses[1 - side]!)));
  await Promise.all(pair.map((device) => device.kill()));
  return answered;
};

const startWithoutControl = async (device: PodDevice, observer: PodDevice, control: ControlServer, address: string) => {
  control.cutOff(true);
  await device.kill();
  await device.start();
  const found = { addresses: await addressesOf(device), reached: await untilReached(observer, address) };
  control.cutOff(false);
  return found;
};

/** What the device has from before is shown until the control server has answered. */
const untilOtherAddress = (device: PodDevice, former: string): Promise<readonly string[]> => {
  const others = async (): Promise<readonly string[] | false> => {
    const addresses = await addressesOf(device);
    return addresses.length > 0 && !addresses.includes(former) && addresses;
  };
  return until(`${device.hostName} has another address than ${former}`, others, 10_000);
};

const main = async (): Promise<Report> => {
  makeNode();
  const [one, two] = [createPodDevice('web-0', 10), createPodDevice('web-1', 11)];
  const control = await startControlServer(PLACE);
  await control.tell({ cacheNetworkMaps: true });
  const nodeState = (): string => kernelState((...argv) => run(argv));
  const before = nodeState();
  const keys = [await control.createKey(TAGS), await control.createKey(TAGS), await control.createKey(TAGS)];
  await one.start(keys[0]);
  await two.start(keys[1]);
  const addresses = [await addressesOf(one), await addressesOf(two)];
  for (const device of [one, two]) await applyAddresses(device);
  await serve(two);
  const address = addresses[1]![0]!;
  await untilReached(one, address);
  const reached = tryPackets(one, address);
  const ofProcess = processOf(one);
  const keysLeft = [one, two].map(({ folder }) => existsSync(join(folder, 'auth-key')));
  const node = [before, nodeState()] as const;
  const pod = await lieTo(one, control);
  const killed = await killAndStart(two, one, address);
  const withoutKey = await startWithoutKey(control);
  const contactsMs: number[] = [];
  for (let number = 0; number < PAIRS; number++) contactsMs.push(...(await contactOf(number, control)));
  const withoutControl = await startWithoutControl(two, one, control, address);
  await control.deleteDevice(two.hostName);
  await two.logIn(keys[2]!);
  const loggedInAgain = { addresses: await untilOtherAddress(two, address), names: await control.deviceNames() };
  const logs = `${one.log()}${two.log()}`;
  const leaked = keys.some((key) => logs.includes(key));
  for (const device of [one, two]) await device.kill();
  control.end();
  const during = {
    killed,
    withoutKey,
    contactsMs,
    withoutControl,
    loggedInAgain,
    leaked,
    elsewhere: readdirSync('/var/lib'),
  };
  return { addresses, reached, keysLeft, process: ofProcess, node, pod, ...during };
};

console.log(JSON.stringify(await main()));
process.exit();
