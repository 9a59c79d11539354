/** Uninstall where one section cannot be cleaned up: in namespaces of its own (cleanup.kernel.spec.ts); prints what it saw as JSON. */
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import {
  KEEPER_UNITS,
  PIN_FOLDER,
  ROUTE_PROTOCOL,
  RUN_FOLDER,
  STATE_FOLDER,
  TAILNET_RUN_FOLDER,
} from '@unbounded/config/ownership';
import { connectivity } from '../connectivity/section.ts';
import { readConfig } from '@unbounded/config';
import { agentOptions } from '../agent.config.ts';
import { lines, run } from './agent-node.testdata.ts';
import { cleanUp } from './cleanup.ts';

export interface Report {
  readonly error: string | undefined;
  readonly said: readonly string[];
  readonly tables: readonly string[];
  readonly routes: readonly string[];
  readonly hasState: boolean;
  /** What is in the run folder and in its folders. */
  readonly running: readonly string[];
}

const config = readConfig(agentOptions, { argv: ['--node-name', 'w1'], env: {} });

const make = (): void => {
  for (const argv of [
    'inet unbounded',
    'arp unbounded',
    'inet unbounded_egress',
    'bridge unbounded_pods',
    'inet others',
  ])
    run('nft', 'add', 'table', ...argv.split(' '));
  run('ip', 'link', 'set', 'lo', 'up');
  for (const protocol of [ROUTE_PROTOCOL, ROUTE_PROTOCOL + 1, 130])
    run('ip', 'route', 'add', 'unreachable', `192.0.2.${protocol}/32`, 'proto', String(protocol));
  for (const folder of [STATE_FOLDER, KEEPER_UNITS, PIN_FOLDER, TAILNET_RUN_FOLDER])
    mkdirSync(folder, { recursive: true });
  writeFileSync(`${STATE_FOLDER}/plan-connectivity.json`, '{}');
  writeFileSync(`${TAILNET_RUN_FOLDER}/unit.json`, '{}');
};

/** @param egress how the second section is cleaned up */
const tryIt = async (egress: () => Promise<void>): Promise<Report> => {
  const said: string[] = [];
  let error: string | undefined;
  const sections = [connectivity(config), { name: 'egress', cleanUp: egress }];
  await cleanUp(config, (line) => void said.push(line), sections).catch((cause: Error) => (error = cause.message));
  return {
    error,
    said,
    tables: lines('nft', 'list', 'tables').sort(),
    routes: lines('ip', 'route', 'show', 'type', 'unreachable'),
    hasState: existsSync(`${STATE_FOLDER}/plan-connectivity.json`),
    running: existsSync(RUN_FOLDER) ? readdirSync(RUN_FOLDER, { encoding: 'utf8', recursive: true }).sort() : [],
  };
};

make();
const failed = await tryIt(async () => Promise.reject(new Error('a device is busy')));
const again = await tryIt(async () => undefined);
process.stdout.write(`\n${JSON.stringify([failed, again])}\n`);
