/**
 * The agent on a node whose disk is full, as it boots, and again without an API server and with a clock that was set, on the same
 * disk. Runs in network and mount namespaces of its own (full-disk.kernel.spec.ts starts it in them), with the data path as argument;
 * prints what it saw as JSON.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CNI_CONF_FOLDER, LINK_ALIAS, PIN_FOLDER, ROUTE_PROTOCOL, STATE_FOLDER } from '@unbounded/config/ownership';
import {
  addPod,
  lines,
  makeNode,
  NotSo,
  OBJECTS,
  run,
  startAgent,
  until,
  writeObjects,
  writeUnreachableCluster,
} from '../agent/agent-node.testdata.ts';
import { printReport } from '../printed-report.testdata.ts';

interface Forwarding {
  readonly routes: readonly string[];
  /** Programs at the tunnel device and at the anchor; entries of the map. Of the eBPF data path alone. */
  readonly programs: number;
  readonly entries: number;
  readonly podNetwork: boolean;
}

export interface Report {
  readonly full: Forwarding & {
    readonly reasons: readonly string[];
    readonly files: readonly string[];
    readonly add: number;
  };
  /** Files that hold a value once there is room again, and whether the pod is among the registered. */
  readonly freed: { readonly files: readonly string[]; readonly pod: boolean; readonly unwritten: string };
  /** After a reboot without an API server: by a clock an hour behind, and an hour ahead. */
  readonly rebooted: readonly (Forwarding & { readonly generation: string })[];
}

const dataplane = process.argv[2] as 'ebpf' | 'netlink';
const NODE_FILES = ['groups', 'health', 'plan-connectivity', 'pods'];
const FILLER = join(STATE_FOLDER, 'filler');
const fill = (): void => {
  try {
    writeFileSync(FILLER, Buffer.alloc(1 << 20));
  } catch {
    // as far as it goes
  }
};

const start = (...flags: string[]) => startAgent(dataplane, { flags });

const forwarding = (): Forwarding => {
  const table = dataplane === 'ebpf' ? 'main' : '252';
  const isEbpf = dataplane === 'ebpf';
  const map = join(PIN_FOLDER, 'maps/unbounded_endpoints_v4');
  const links = join(PIN_FOLDER, 'links');
  return {
    routes: lines('ip', 'route', 'show', 'table', table, 'proto', String(ROUTE_PROTOCOL)).map(
      (line) => line.split(' ')[0]!,
    ),
    programs: isEbpf && existsSync(links) ? readdirSync(links).length : 0,
    entries: isEbpf ? (JSON.parse(run('bpftool', '-j', 'map', 'dump', 'pinned', map)) as unknown[]).length : 0,
    podNetwork: existsSync('/sys/class/net/cbr0'),
  };
};

/** What a reboot leaves of the kernel's state, and of /run: nothing. */
const forgetKernel = (): void => {
  type Shown = { readonly ifname: string; readonly ifalias?: string };
  for (const { ifname, ifalias } of JSON.parse(run('ip', '-j', 'link')) as Shown[])
    if (ifalias === LINK_ALIAS) run('ip', 'link', 'del', ifname);
  rmSync(PIN_FOLDER, { recursive: true, force: true });
  run('nft', 'flush', 'ruleset');
  for (const what of [
    ['route', 'flush', 'table', '252'],
    ['rule', 'flush', 'priority', '32765'],
    ['nexthop', 'flush'],
  ])
    spawnSync('ip', what, { stdio: 'ignore' }); // there may be nothing
  rmSync('/run/unbounded', { recursive: true, force: true });
};

const written = (): string[] =>
  readdirSync(STATE_FOLDER)
    .filter((name) => name.endsWith('.json'))
    .sort();

const main = async (): Promise<Report> => {
  makeNode();
  writeObjects();
  fill();
  const first = await start('--manifests-dir', OBJECTS);
  const { exitCode: add } = await addPod();
  await until('all is told', () => first.log.some(({ reason }) => reason === 'StateNotWritable'));
  const reasons = [...new Set(first.log.flatMap(({ reason }) => reason ?? []))];
  const full = { ...forwarding(), reasons, files: written(), add };
  rmSync(FILLER);
  await until('everything is written', () => NODE_FILES.every((name) => written().includes(`${name}.json`)));
  const pod = readFileSync(join(STATE_FOLDER, 'pods.json'), 'utf8').includes('"name":"web"');
  const metric = 'unbounded_state_files_unwritten 0';
  await until('the metric says so', async () => (await first.metrics.render()).split('\n').includes(metric));
  const freed = { files: written(), pod, unwritten: metric };
  await first.part.stop();

  const kubeconfig = writeUnreachableCluster();
  const rebooted: (Forwarding & { readonly generation: string })[] = [];
  const realNow = Date.now;
  for (const stepMs of [-3_600_000, 3_600_000]) {
    forgetKernel();
    fill();
    Date.now = () => realNow() + stepMs;
    const { part, metrics } = await start('--kubeconfig', kubeconfig);
    const generation = (await metrics.render())
      .split('\n')
      .find((line) => line.startsWith('unbounded_wireguard_key_generation '))!;
    rebooted.push({ ...forwarding(), generation });
    await part.stop();
  }
  return { full, freed, rebooted };
};

try {
  await printReport(await main());
  process.exit(0);
} catch (error) {
  if (error instanceof NotSo) {
    process.stdout.write(`\n${JSON.stringify({ full: { notSo: error.message }, freed: {}, rebooted: [] })}\n`);
    process.exit(0);
  }
  console.error(error, existsSync(CNI_CONF_FOLDER) && readdirSync(CNI_CONF_FOLDER));
  process.exit(1);
}
