import { basename, dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { nodeCommand, V8_OPTIONS } from '@unbounded/config/node-command';
import { KEY_FOLDER, RELAY_STATE, RELAY_TALLIES, RELAY_UNIT } from '@unbounded/config/ownership';
import type { Command } from '../process.ts';

/** How the process of the relay's proxies is run. It faces the network, so it may touch little else. */

/** The name under which the keeper knows it; no device has it. */
export const RELAY_PROCESS = 'relay';

export interface RelayFiles {
  readonly unitFile: string;
  readonly stateFile: string;
}

/** RELAY_UNIT and RELAY_STATE, beside whichever folder of units it is. */
export const relayFilesBeside = (unitsDir: string): RelayFiles => ({
  unitFile: join(dirname(unitsDir), basename(RELAY_UNIT)),
  stateFile: join(dirname(unitsDir), basename(RELAY_STATE)),
});

const isSource = import.meta.url.endsWith('.ts');
/** In the checkout the source itself, in the image the bundle beside the keeper's. */
const program = fileURLToPath(new URL(isSource ? './relay.process.ts' : './relay.process.mjs', import.meta.url));
/** Where its code is: the bundle alone, or the checkout. */
const code = isSource ? resolve(import.meta.dirname, '../../../..') : program;

/** Certificates of who signs a relay's, besides the ones that Node knows. */
const CERTIFICATES = 'NODE_EXTRA_CA_CERTS';

/**
 * It may read its code, the keys and the folders of its files, and write its two files and those that replace them, not the
 * units of tunnels beside them; it may start no process and load no native code. Neither a key nor a token is in its arguments or environment.
 */
export const relayCommand = ({ unitFile, stateFile }: RelayFiles): Command => {
  const certificates = process.env[CERTIFICATES];
  const talliesFile = join(dirname(stateFile), basename(RELAY_TALLIES));
  const writable = [stateFile, talliesFile].flatMap((file) => [file, `${file}.new`]);
  const readable = [code, KEY_FOLDER, dirname(unitFile), dirname(stateFile)];
  return {
    program: nodeCommand[0],
    args: [
      ...V8_OPTIONS,
      '--permission',
      ...readable.map((path) => `--allow-fs-read=${path}`),
      ...writable.map((path) => `--allow-fs-write=${path}`),
      program,
      ...['--relay-unit', unitFile],
      ...['--relay-state', stateFile],
    ],
    env: {
      PATH: '/usr/bin:/bin',
      ...(certificates === undefined ? {} : { [CERTIFICATES]: certificates }),
    },
  };
};
