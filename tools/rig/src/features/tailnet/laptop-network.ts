import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { run, tryRun } from '../../machine/command.ts';
import { LAPTOP_TUN, laptopFolder } from './layout.ts';

/** A process in the namespace of the laptop's user: keeps its addresses those that the device has, as a router of tailscaled does. */

const LOOK_MS = 500;
/** Of a tailnet: all of its addresses. */
const BLOCKS = ['100.64.0.0/10', 'fd7a:115c:a1e0::/48'];

const addressesNow = (): readonly string[] => {
  const url = 'http://local-tailscaled.sock/localapi/v0/status?peers=false';
  const socket = join(laptopFolder, 'tailscaled.sock');
  const said = tryRun(['curl', '-sf', '--max-time', '2', '--unix-socket', socket, url]);
  const { BackendState, TailscaleIPs } = JSON.parse(said ?? '{}') as {
    readonly BackendState?: string;
    readonly TailscaleIPs?: readonly string[];
  };
  return BackendState === 'Running' ? (TailscaleIPs ?? []) : [];
};

const apply = (addresses: readonly string[]): void => {
  const lines = addresses.map((ip) => `addr replace ${ip}/${ip.includes(':') ? '128' : '32'} dev ${LAPTOP_TUN}\n`);
  const routes = BLOCKS.map((block) => `route replace ${block} dev ${LAPTOP_TUN}\n`);
  run(['ip', '-batch', '-'], { input: [`addr flush dev ${LAPTOP_TUN} scope global\n`, ...lines, ...routes].join('') });
};

for (let applied = ''; ; await delay(LOOK_MS)) {
  const addresses = addressesNow();
  if (addresses.length === 0 || addresses.join() === applied) continue;
  apply(addresses);
  applied = addresses.join();
}
