import { existsSync, readdirSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { PIN_FOLDER, PORTS, STATE_FOLDER } from '@unbounded/config/ownership';
import { filterProgramId, openPinnedLink, pinnedMapInfo } from '@unbounded/libbpf-ts';
import { createRouteSocket } from '@unbounded/netlink';
import { createLogger, createMetrics } from '@unbounded/telemetry';
import { applyPlan, type Dataplane } from '../../connectivity/dataplane.ts';
import { openEbpfPath } from './ebpf-path.ts';
import { startHealth } from '../../connectivity/health/health.ts';
import { noPaths } from '../../connectivity/paths/paths.testdata.ts';
import { groupMapPin } from './forwarding-maps.ts';
import { KEYS, type NodeName, planFor } from './migration-objects.testdata.ts';
import { stepsTaken } from './migration-steps.testdata.ts';
import { PLACES } from './places.ts';
import { createSysctls } from '../../kernel/sysctls.ts';
import { openFirewall } from '../../connectivity/kernel/firewall.testdata.ts';

/** An agent's data path as a process of its own (migration.testdata.ts starts and kills it): one pass, and what there is then. */

export interface AgentOptions {
  readonly name: NodeName;
  /** The compiled programs. */
  readonly objectPath: string;
  readonly via?: 'clsact';
  /** Another folder than that of the layout. */
  readonly pinFolder?: string;
  /** The thread that probes answers that it cannot write groups, or writes none. */
  readonly groups?: 'fail' | 'missing';
  /** Goes on until it is killed. */
  readonly stays?: boolean;
}

export interface AgentReport {
  readonly problems: readonly string[];
  /** Names in the folder of all layouts, and everything else in bpffs. */
  readonly layouts: readonly string[];
  readonly others: readonly string[];
  /** By device: the id of the pinned link (0: none), and that of the program. */
  readonly attached: Readonly<Record<string, { readonly link: number; readonly program: number | undefined }>>;
  /** By name, of the layout that is in use. */
  readonly mapIds: Readonly<Record<string, number>>;
  readonly steps: number;
}

const options = JSON.parse(process.argv[2]!) as AgentOptions;
const { name, objectPath, via, pinFolder = PIN_FOLDER } = options;

const listed = (folder: string): string[] => (existsSync(folder) ? readdirSync(folder).sort() : []);

const attachedAt = (device: string, ifindex: number): AgentReport['attached'][string] => {
  for (const layout of listed(dirname(pinFolder))) {
    const pin = join(dirname(pinFolder), layout, 'links', device);
    if (!existsSync(pin)) continue;
    using link = openPinnedLink(pin);
    if (link.info.ifindex === ifindex) return { link: link.info.id, program: link.info.programId };
  }
  return { link: 0, program: filterProgramId({ ifindex, direction: PLACES[device]!.direction }) };
};

const open = (): Dataplane => {
  const logger = createLogger({ name, level: 'error', destination: process.stderr });
  const net = createRouteSocket();
  const path = openEbpfPath(net, {
    objectPath,
    pinFolder,
    indexFile: join(STATE_FOLDER, 'groups.json'),
    ...(via === undefined ? {} : { via }),
  });
  const health = startHealth({
    keys: { current: KEYS[name] },
    port: PORTS.health,
    groups: { mapPin: groupMapPin(pinFolder) },
    stateFile: join(STATE_FOLDER, 'health.json'),
    logger,
    metrics: createMetrics(),
    onChange: () => undefined,
  });
  const apply: Dataplane['health']['apply'] = async (plan) => {
    if (options.groups === 'fail') throw new Error('the map cannot be written');
    return health.apply(options.groups === 'missing' ? { ...plan, groups: [] } : plan);
  };
  return {
    net,
    ...openFirewall(logger),
    path,
    health: { ...health, apply },
    paths: noPaths(),
    sysctls: createSysctls(join(STATE_FOLDER, 'sysctls.json')),
    wireGuard: { keyOf: () => ({ privateKey: KEYS[name], file: '' }), unitsDir: '/run/unbounded/keeper/units' },
    relayWays: () => [],
    pods: () => [],
    logger,
  };
};

const look = async ({ net }: Dataplane, problems: readonly string[]): Promise<AgentReport> => {
  const maps = join(pinFolder, 'maps');
  const links = (await net.links.list()).filter((link) => PLACES[link.name]);
  return {
    problems,
    layouts: listed(dirname(pinFolder)),
    others: (readdirSync(dirname(dirname(pinFolder)), { recursive: true }) as string[])
      .filter((path) => !path.startsWith(`${basename(dirname(pinFolder))}/v`))
      .sort(),
    attached: Object.fromEntries(links.map((link) => [link.name, attachedAt(link.name, link.index)])),
    mapIds: Object.fromEntries(listed(maps).map((map) => [map, pinnedMapInfo(join(maps, map)).id])),
    steps: stepsTaken(),
  };
};

const dataplane = open();
const { problems } = await applyPlan(dataplane, planFor(name));
const report = await look(
  dataplane,
  problems.map(({ reason, message }) => `${reason}: ${message}`),
);
process.stdout.write(`${JSON.stringify(report)}\n`);
while (options.stays) {
  await wait(1000);
  await applyPlan(dataplane, planFor(name));
}
await dataplane.health.stop();
process.exit(0);
