import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLogger } from '@unbounded/telemetry';
import { afterEach, beforeEach } from 'vitest';
import { createStateFaults } from '../../state/state-faults.ts';
import { createRelayProxies, type RelayProxies, type RelayProxiesOptions } from './relay-proxies.ts';
import { EXTERNAL, relayPlan } from './relay.testdata.ts';

/** The proxies of a node, and what their process would write. */

/** Public keys; what relayPlan knows a relayed peer by is that it has capitals only. */
export const [OWN, PEER] = [`${'O'.repeat(42)}A=`, `${'P'.repeat(42)}A=`];

/** Of the node's state: new for each test. */
export let folder: string;
/** Of the proxies, milliseconds. */
export const clock = { ms: 0 };
let opened: RelayProxies[];

/** Gives each test of the file a folder, and stops its proxies. */
export const useProxies = (): void => {
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'relay-'));
    clock.ms = 0;
    opened = [];
  });
  afterEach(() => {
    for (const proxies of opened) proxies.stop();
    rmSync(folder, { recursive: true });
  });
};

export const unitFile = (): string => join(folder, 'keeper/relay.json');
/** Of what is watched: tells that it is another. */
export let tellWatchers: () => void;
export const openProxies = (
  read?: NonNullable<RelayProxiesOptions['managed']>['read'],
  faults = createStateFaults(),
): RelayProxies => {
  const proxies = createRelayProxies({
    unitFile: unitFile(),
    stateFile: join(folder, 'keeper/relay-state.json'),
    talliesFile: join(folder, 'keeper/relay-tallies.json'),
    stateDir: folder,
    keyOf: () => ({ publicKey: OWN, file: '/etc/wireguard/server.priv' }),
    managed: read && {
      read,
      watch: (onChange) => {
        tellWatchers = onChange;
        return () => undefined;
      },
    },
    faults,
    logger: silentLogger,
    now: () => clock.ms,
  });
  opened.push(proxies);
  return proxies;
};
export const LANE = { own: OWN, peer: PEER, wireGuardPort: 51820 };
export const tellState = (value: unknown): void => {
  const file = join(folder, 'keeper/relay-state.json');
  writeFileSync(`${file}.new`, typeof value === 'string' ? value : JSON.stringify(value));
  renameSync(`${file}.new`, file);
};
export const stateWith = (connected: boolean, port = 40_000) => ({
  proxies: [{ ...LANE, port }],
  relays: [{ name: 'relay.example.com:3478', connected }],
});
export const PLAN = relayPlan(EXTERNAL, { listen: 51820, to: [PEER] });
