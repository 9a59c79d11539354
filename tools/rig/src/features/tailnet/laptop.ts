import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type LabLayout, namespaceOf } from '../../layout/layout.ts';
import { inNamespace, run } from '../../machine/command.ts';
import { logTail, pidOf, startDaemon } from '../../machine/daemon.ts';
import { binary, checkout, nodeJs } from '../../machine/paths.ts';
import { caFile, podStart } from '../../apps/tailnet-place.ts';
import { makeWanHost } from '../wan-host.ts';
import { laptopKeyFile } from './control-server.ts';
import { controlUrl, LAPTOP_TUN, laptopFolder, laptopIps } from './layout.ts';

/** A laptop on the WAN that is in the tailnet: its user is in a namespace of its own, which has nothing but the tailnet. */

export const LAPTOP = 'laptop';
const USER = 'laptop-user';
/** What gives it its addresses, as a router does, and what answers on it. */
const [NETWORK, ANSWERS] = ['laptop-network', 'laptop-answers'];
const LOGIN_WITHIN_MS = 30_000;
export const laptopDaemons = [LAPTOP, NETWORK, ANSWERS];

/** What runs a program as the laptop's user does. */
export const asLaptopUser = (): string[] => inNamespace(namespaceOf(USER));

const makeUser = (): void => {
  const namespace = namespaceOf(USER);
  if (existsSync(`/run/netns/${namespace}`)) return;
  run(['ip', 'netns', 'add', namespace]);
  run(['ip', '-n', namespace, 'tuntap', 'add', 'dev', LAPTOP_TUN, 'mode', 'tun', 'vnet_hdr']);
  run(['ip', '-n', namespace, '-batch', '-'], {
    input: `link set lo up\nlink set ${LAPTOP_TUN} mtu 1280 txqueuelen 3000 up\n`,
  });
};

const startDevice = (layout: LabLayout): void => {
  makeWanHost(LAPTOP, LAPTOP, laptopIps(layout));
  makeUser();
  mkdirSync(laptopFolder, { recursive: true, mode: 0o700 });
  run([join(checkout, 'deploy/image/build.sh'), podStart, 'pod-start']);
  if (!existsSync(join(laptopFolder, 'tailscaled.state')))
    writeFileSync(join(laptopFolder, 'auth-key'), readFileSync(laptopKeyFile, 'utf8'), { mode: 0o600 });
  startDaemon(
    LAPTOP,
    [
      ...[...inNamespace(namespaceOf(LAPTOP)), podStart, 'tun', `/run/netns/${namespaceOf(USER)}`, LAPTOP_TUN],
      ...[binary('tailnet-device'), '-dir', laptopFolder, '-control', controlUrl(layout), '-hostname', LAPTOP],
    ],
    { env: { PATH: process.env['PATH'], SSL_CERT_FILE: caFile } },
  );
};

/** What runs is left alone. */
export const startLaptop = (layout: LabLayout): void => {
  if (pidOf(LAPTOP) === undefined) startDevice(layout);
  if (pidOf(NETWORK) === undefined)
    startDaemon(NETWORK, [...asLaptopUser(), nodeJs, join(import.meta.dirname, 'laptop-network.ts')]);
  if (pidOf(ANSWERS) === undefined) startDaemon(ANSWERS, [...asLaptopUser(), binary('probe'), 'serve']);
};

const userAddresses = (): readonly string[] => {
  const printed = run([...asLaptopUser(), 'ip', '-o', 'addr', 'show', 'dev', LAPTOP_TUN, 'scope', 'global']);
  return [...printed.matchAll(/inet6? ([^/]+)/g)].map(([, address]) => address!);
};

/** Waits until its user has its addresses. @throws Error when that is not in time */
export const laptopAddresses = async (): Promise<readonly string[]> => {
  for (const end = Date.now() + LOGIN_WITHIN_MS; ; await delay(200)) {
    const addresses = userAddresses();
    if (addresses.length > 0) return addresses;
    if (Date.now() > end)
      throw new Error(`the laptop is not in the tailnet after ${LOGIN_WITHIN_MS / 1000} s:\n${logTail(LAPTOP)}`);
  }
};
