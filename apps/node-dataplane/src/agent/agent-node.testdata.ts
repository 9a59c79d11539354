/** A node with an agent in namespaces of their own (ENTER), for scenarios: processes that print what they saw as JSON. */
import { execFile, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { agentCommand } from '@unbounded/config/node-command';
import { readConfig } from '@unbounded/config';
import { CNI_SOCKET } from '@unbounded/config/ownership';
import type { HostServices } from '@unbounded/host';
import { createLogger, createMetrics } from '@unbounded/telemetry';
import { type AgentConfig, agentOptions } from '../agent.config.ts';
import type { SectionType } from '../section.port.ts';
import { objectsFor } from '../testdata.ts';
import { type AgentOverrides, openAgent } from './open-agent.ts';
import { sectionsOf } from './sections.ts';

/** Of `unshare --net --mount`: folders of its own over those of the machine, and a disk of a few kB for what outlives a reboot. */
const ENTER = `set -e
for folder in /run /var/lib /etc/cni /opt/cni; do [ ! -d $folder ] || mount -t tmpfs tmpfs $folder; done
mkdir -p /var/lib/unbounded; mount -t tmpfs -o size=128k tmpfs /var/lib/unbounded
mount -t sysfs sysfs /sys; mount -t bpf bpf /sys/fs/bpf
exec "$0" "$@"`;

/** For unshare(1), before the program. */
export const NAMESPACES = ['--net', '--mount', '--propagation', 'private', 'sh', '-c', ENTER, ...agentCommand];
const OUTPUT = { encoding: 'utf8', maxBuffer: 64 << 20 } as const;
const reportIn = (printed: string): unknown => JSON.parse(printed.trimEnd().split('\n').at(-1)!);

/** Runs a scenario, of which the last line is its report. */
export const runScenario = (scenario: string, ...argv: readonly string[]): unknown =>
  reportIn(execFileSync('unshare', [...NAMESPACES, scenario, ...argv], OUTPUT));

export const DATA_PATHS = ['ebpf', 'netlink'] as const;
export type DataPath = (typeof DATA_PATHS)[number];
type ByDataPath<R> = Readonly<Record<DataPath, R>>;

/** The same beside others. */
export const startOn = async <R>(scenario: string, dataPath: DataPath): Promise<R> =>
  reportIn((await promisify(execFile)('unshare', [...NAMESPACES, scenario, dataPath], OUTPUT)).stdout) as R;

/** On both data paths side by side: scenarios wait most of the time. */
export const startOnBoth = async <R>(scenario: string): Promise<ByDataPath<R>> => {
  const [ebpf, netlink] = await Promise.all(DATA_PATHS.map((dataPath) => startOn<R>(scenario, dataPath)));
  return { ebpf: ebpf!, netlink: netlink! };
};

export const OBJECTS = '/run/objects';
const KEYS = '/run/keys';
const NODE = 'w1';

export const run = (...argv: string[]): string => execFileSync(argv[0]!, argv.slice(1), { encoding: 'utf8' });
export const lines = (...argv: string[]): string[] =>
  run(...argv)
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean);

/** What the agent was to do and did not: for the test to judge. */
export class NotSo extends Error {
  override readonly name = 'NotSo';
}

export const until = async <T>(what: string, probe: () => T | Promise<T>): Promise<T> => {
  for (const end = performance.now() + 60_000; ; await new Promise((resolve) => setTimeout(resolve, 50))) {
    const value = await probe();
    if (value) return value;
    if (performance.now() > end) throw new NotSo(what);
  }
};

export const makeNode = (address = '10.1.0.30'): void => {
  run('ip', 'link', 'set', 'lo', 'up');
  run('ip', 'link', 'add', 'eth0', 'type', 'veth', 'peer', 'name', 'wire');
  run('ip', 'addr', 'add', `${address}/24`, 'dev', 'eth0');
  for (const name of ['wire', 'eth0']) run('ip', 'link', 'set', name, 'up');
};

const nodeObject = (name: string, host: number): object => ({
  kind: 'Node',
  metadata: { name },
  spec: { podCIDRs: [`100.65.${host}.0/24`] },
  status: { addresses: [{ type: 'InternalIP', address: `10.1.0.${host}` }] },
});

/** @param annotations of the first Site */
export const writeObjects = (annotations: Readonly<Record<string, string>> = {}, folder = OBJECTS): void => {
  mkdirSync(folder, { recursive: true });
  const { sites, slices, gatewayPools, assignments, poolPeerings } = objectsFor('VXLAN');
  const [first, ...others] = sites;
  const annotated = { ...first!, metadata: { ...first!.metadata, annotations } };
  const ownNodes = [nodeObject(NODE, 30), nodeObject('x1', 31)];
  const all = [annotated, ...others, ...slices, ...gatewayPools, ...assignments, ...poolPeerings, ...ownNodes];
  for (const [index, object] of all.entries()) writeFileSync(join(folder, `${index}.json`), JSON.stringify(object));
};

/** A kubeconfig of a cluster whose API server's name cannot be resolved. */
export const writeUnreachableCluster = (): string => {
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
  return kubeconfig;
};

export interface StartOptions {
  readonly node?: string;
  readonly flags: readonly string[];
  readonly sections?: (config: AgentConfig, services: HostServices) => readonly SectionType[];
  readonly overrides?: AgentOverrides;
}

/** An agent that has applied a plan. */
export const startAgent = async (dataplane: string, options: StartOptions) => {
  const { node = NODE, flags, sections = sectionsOf, overrides } = options;
  const log: { readonly reason?: string; readonly msg: string }[] = [];
  const metrics = createMetrics();
  const destination = { write: (line: string) => void log.push(JSON.parse(line) as never) };
  const services = { logger: createLogger({ name: 'agent', destination }), metrics };
  const argv = ['--node-name', node, '--dataplane', dataplane, '--key-dir', KEYS, ...flags];
  const config = readConfig(agentOptions, { argv, env: {} });
  const part = openAgent(config, services, sections(config, services), overrides);
  await part.start();
  await until('a plan is applied', () => part.isReady);
  return { part, log, metrics };
};

/** What a pod's start asks of the agent. */
export const addPod = async ({
  namespace = 'default',
  name = 'web',
  id = 'c1',
}: { readonly namespace?: string; readonly name?: string; readonly id?: string } = {}): Promise<{
  readonly exitCode: number;
  readonly output: string;
}> => {
  const [veth, inside] = [`veth-${id}`, `pod-${id}`];
  run('ip', 'link', 'add', veth, 'type', 'veth', 'peer', 'name', inside);
  run('ip', 'link', 'set', veth, 'master', 'cbr0', 'up');
  const environment = {
    UNBOUNDED_CNI_SOCKET: CNI_SOCKET,
    CNI_COMMAND: 'ADD',
    CNI_CONTAINERID: id,
    CNI_IFNAME: 'eth0',
    CNI_NETNS: '/proc/self/ns/net',
    CNI_ARGS: `K8S_POD_NAMESPACE=${namespace};K8S_POD_NAME=${name}`,
  };
  const interfaces = [{ name: veth }, { name: 'eth0', mac: '02:00:00:00:00:09', sandbox: '/proc/self/ns/net' }];
  const prevResult = { interfaces, ips: [{ address: '100.65.30.9/24', interface: 1 }] };
  const child = spawn(join(import.meta.dirname, '../../../cni/build/unbounded-cni'), {
    env: environment,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  child.stdin.end(JSON.stringify({ cniVersion: '1.0.0', name: 'unbounded', type: 'unbounded-cni', prevResult }));
  const output = text(child.stdout);
  const [exitCode] = (await once(child, 'exit')) as [number];
  return { exitCode, output: await output };
};
