import { basename, dirname, join } from 'node:path';
import { loadConfig, option, text } from '@unbounded/config';
import { KEEPER_PROCESSES, KEEPER_REJECTED, KEEPER_UNITS, RUN_FOLDER } from '@unbounded/config/ownership';
import { createLogger } from '@unbounded/telemetry';
import { createDeviceKeeper, deviceFolders } from './devices/device-keeper.ts';
import { createKeeper, type Keeper } from './keeper.ts';
import { relayFilesBeside } from './relay/command.ts';

/** A dead process is noticed after at most this, so that traffic is back well within two seconds. */
const TEND_EVERY_MS = 100;

const config = loadConfig(
  'node-keeper',
  {
    unitsDir: option(text(KEEPER_UNITS), 'Directory of the units that the agent writes.'),
    pidsDir: option(text(`${RUN_FOLDER}/keeper/pids`), 'Directory of the PID files of running processes.'),
    wireguardGo: option(text('/usr/bin/wireguard-go'), 'The user-space WireGuard program.'),
    tailnetRunDir: option(
      text(''),
      'Directory of the units of tailnet devices, pids and states below it: keeps those instead of tunnels. Empty: tunnels.',
    ),
    tailnetDevicesDir: option(text('/var/lib/tailscale-cni/pods'), 'Directory of the folders of tailnet devices.'),
    tailnetCaFile: option(
      text(''),
      'PEM file of the authorities that sign the control server’s certificate. Empty: those of the system.',
    ),
    podStart: option(text('/usr/bin/pod-start'), 'The program that enters pods’ network namespaces.'),
    tailnetDevice: option(text('/usr/bin/tailnet-device'), 'The program of a tailnet device.'),
  },
  process,
);
const logger = createLogger({ name: 'node-keeper' });
const openKeeper = (): Keeper => {
  const { unitsDir, pidsDir, tailnetRunDir } = config;
  if (tailnetRunDir === '') {
    const rejectedFile = join(dirname(unitsDir), basename(KEEPER_REJECTED));
    const processesFile = join(dirname(unitsDir), basename(KEEPER_PROCESSES));
    const relay = relayFilesBeside(unitsDir);
    return createKeeper({ unitsDir, pidsDir, rejectedFile, processesFile, program: config.wireguardGo, relay, logger });
  }
  const { podStart, tailnetDevice: device, tailnetDevicesDir: devicesDir, tailnetCaFile: caFile } = config;
  return createDeviceKeeper({ ...deviceFolders(tailnetRunDir), podStart, device, devicesDir, caFile, logger });
};
const keeper = openKeeper();

let ending = false;
for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  process.on(signal, () => {
    ending = true; // what runs goes on: a successor finds it
  });
}
// As PID 1 of its container the keeper must not end: all that it runs would end with it. Nothing that is left half done by an error
// is relied upon, because each look begins with what runs.
const survive = (error: unknown): void => logger.error({ err: error }, 'unexpected error; keeping what runs');
process.on('uncaughtException', survive);
process.on('unhandledRejection', survive);

while (!ending) {
  await keeper.tend(performance.now()).catch(survive);
  await new Promise((resolve) => setTimeout(resolve, TEND_EVERY_MS));
}
process.exit(0);
