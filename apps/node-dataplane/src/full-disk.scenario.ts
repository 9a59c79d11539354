/**
 * The agent on a node whose disk is full, as it boots, and again without an API server and with a clock that was set, on the same
 * disk. Runs in network and mount namespaces of its own (full-disk.kernel.spec.ts starts it in them), with the data path as argument;
 * prints what it saw as JSON.
 */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { readConfig } from '@unbounded/config';
import {
  CNI_CONF_FOLDER,
  CNI_SOCKET,
  LINK_ALIAS,
  PIN_FOLDER,
  ROUTE_PROTOCOL,
  STATE_FOLDER,
} from '@unbounded/config/ownership';
import { createLogger, createMetrics } from '@unbounded/telemetry';
import { agentOptions } from './agent.config.ts';
import { createAgentPart } from './agent.part.ts';
import { ROTATION_TIMES } from './keys/rotation.ts';
import { objectsFor } from './testdata.ts';

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
const OBJECTS = '/run/objects';
const KEYS = '/run/keys';
const NODE = 'w1';
const run = (...argv: string[]): string => execFileSync(argv[0]!, argv.slice(1), { encoding: 'utf8' });
const lines = (...argv: string[]): string[] =>
  run(...argv)
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean);

/** What the agent was to do and did not: for the test to judge. */
class NotSo extends Error {
  override readonly name = 'NotSo';
}

const until = async <T>(what: string, probe: () => T | Promise<T>): Promise<T> => {
  for (const end = performance.now() + 60_000; ; await new Promise((resolve) => setTimeout(resolve, 50))) {
    const value = await probe();
    if (value) return value;
    if (performance.now() > end) throw new NotSo(what);
  }
};

const makeNode = (): void => {
  run('ip', 'link', 'set', 'lo', 'up');
  run('ip', 'link', 'add', 'eth0', 'type', 'veth', 'peer', 'name', 'wire');
  run('ip', 'addr', 'add', '10.1.0.30/24', 'dev', 'eth0');
  for (const name of ['wire', 'eth0']) run('ip', 'link', 'set', name, 'up');
};
const writeObjects = (): void => {
  mkdirSync(OBJECTS, { recursive: true });
  const { sites, slices, gatewayPools, assignments, poolPeerings } = objectsFor('VXLAN');
  const node = {
    kind: 'Node',
    metadata: { name: NODE },
    spec: { podCIDRs: ['100.65.30.0/24'] },
    status: { addresses: [{ type: 'InternalIP', address: '10.1.0.30' }] },
  };
  for (const [index, object] of [...sites, ...slices, ...gatewayPools, ...assignments, ...poolPeerings, node].entries())
    writeFileSync(join(OBJECTS, `${index}.json`), JSON.stringify(object));
};
const FILLER = join(STATE_FOLDER, 'filler');
const fill = (): void => {
  try {
    writeFileSync(FILLER, Buffer.alloc(1 << 20));
  } catch {
    // as far as it goes
  }
};

const start = async (...flags: string[]) => {
  const log: { readonly reason?: string; readonly msg: string }[] = [];
  const metrics = createMetrics();
  const logger = createLogger({
    name: 'agent',
    destination: { write: (line) => void log.push(JSON.parse(line) as never) },
  });
  const argv = ['node', 'agent', '--node-name', NODE, '--dataplane', dataplane, '--key-folder', KEYS, ...flags];
  const config = readConfig(agentOptions, { argv: argv.slice(2), env: {} });
  const part = createAgentPart(config, { logger, metrics }, ROTATION_TIMES);
  await part.start();
  await until('a plan is applied', () => part.isReady);
  return { part, log, metrics };
};

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

/** What a pod's start asks of the agent; its exit code. */
const addPod = async (): Promise<number> => {
  run('ip', 'link', 'add', 'veth1', 'type', 'veth', 'peer', 'name', 'pod1');
  run('ip', 'link', 'set', 'veth1', 'master', 'cbr0', 'up');
  const environment = {
    UNBOUNDED_CNI_SOCKET: CNI_SOCKET,
    CNI_COMMAND: 'ADD',
    CNI_CONTAINERID: 'c1',
    CNI_IFNAME: 'eth0',
    CNI_NETNS: '/proc/self/ns/net',
    CNI_ARGS: 'K8S_POD_NAMESPACE=default;K8S_POD_NAME=web',
  };
  const interfaces = [{ name: 'veth1' }, { name: 'eth0', mac: '02:00:00:00:00:09', sandbox: '/proc/self/ns/net' }];
  const prevResult = { interfaces, ips: [{ address: '100.65.30.9/24', interface: 1 }] };
  const child = spawn(join(import.meta.dirname, '../../cni/build/unbounded-cni'), {
    env: environment,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  child.stdin.end(JSON.stringify({ cniVersion: '1.0.0', name: 'unbounded', type: 'unbounded-cni', prevResult }));
  void text(child.stdout);
  const [code] = (await once(child, 'exit')) as [number];
  return code;
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
    spawn('ip', what, { stdio: 'ignore' });
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
  const first = await start('--objects', OBJECTS);
  const add = await addPod();
  await until('all is told', () => first.log.some(({ reason }) => reason === 'StateNotWritable'));
  const reasons = [...new Set(first.log.flatMap(({ reason }) => reason ?? []))];
  const full = { ...forwarding(), reasons, files: written(), add };
  rmSync(FILLER);
  await until('everything is written', () =>
    ['groups', 'health', 'plan', 'pods'].every((name) => written().includes(`${name}.json`)),
  );
  const pod = readFileSync(join(STATE_FOLDER, 'pods.json'), 'utf8').includes('"name":"web"');
  const metric = 'unbounded_state_files_unwritten 0';
  await until('the metric says so', async () => (await first.metrics.render()).split('\n').includes(metric));
  const freed = { files: written(), pod, unwritten: metric };
  await first.part.stop();

  const kubeconfig = '/run/kubeconfig';
  const cluster = { name: 'c', cluster: { server: 'https://api.invalid:6443' } };
  const context = { name: 'x', context: { cluster: 'c', user: 'u' } };
  const user = { name: 'u', user: { token: 't' } };
  writeFileSync(
    kubeconfig,
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'x',
      clusters: [cluster],
      users: [user],
      contexts: [context],
    }),
  );
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
  process.stdout.write(`\n${JSON.stringify(await main())}\n`);
  process.exit(0);
} catch (error) {
  if (error instanceof NotSo) {
    process.stdout.write(`\n${JSON.stringify({ full: { notSo: error.message }, freed: {}, rebooted: [] })}\n`);
    process.exit(0);
  }
  console.error(error, existsSync(CNI_CONF_FOLDER) && readdirSync(CNI_CONF_FOLDER));
  process.exit(1);
}
