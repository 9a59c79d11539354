import type { ChildProcess } from 'node:child_process';
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { NodePlan } from '@unbounded/topology';
import { end, inNamespace, start, until } from './command.ts';
import type { VmNode } from './nodes.ts';

/** The agent of one node, from its bundle, with folders of its own. */

const repository = join(import.meta.dirname, '../../..');
const base = '/run/vm-nodes';

export const objectsFolder = (node: VmNode): string => join(base, node.name, 'objects');

/** Hands the agent its objects, whole. */
export const writeObjects = (node: VmNode, objects: readonly object[]): void => {
  const folder = objectsFolder(node);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'world.new'), objects.map((object) => JSON.stringify(object)).join('\n---\n'));
  renameSync(join(folder, 'world.new'), join(folder, 'world.yaml'));
};

export const prepareFolders = (node: VmNode): void => {
  const keys = join(base, node.name, 'keys');
  mkdirSync(keys, { recursive: true, mode: 0o700 });
  writeFileSync(join(keys, 'server.priv'), node.privateKey, { mode: 0o600 });
};

const flagsOf = (node: VmNode): string[] => {
  const own = (name: string): string => join(base, node.name, name);
  return [
    ...['--node-name', node.name, '--objects', own('objects'), '--health-port', '0'],
    ...['--state-folder', own('state'), '--key-folder', own('keys'), '--pin-folder', `/sys/fs/bpf/${node.name}`],
    ...['--units-folder', own('units'), '--cni-conf-folder', own('cni-conf'), '--cni-bin-folder', own('cni-bin')],
    ...['--cni-socket', own('cni.sock')],
  ];
};

export interface Agent {
  readonly node: VmNode;
  /** Warnings and errors of its log so far, all processes together. */
  readonly complaints: readonly string[];
  /** Starts a process; resolves when its first plan is in the kernel. */
  start(): Promise<void>;
  end(signal: NodeJS.Signals): Promise<void>;
}

const WARN = 40;

export const createAgent = (node: VmNode): Agent => {
  const complaints: string[] = [];
  let child: ChildProcess | undefined;
  let applied = false;
  const onLine = (line: string): void => {
    if (process.env['VM_VERBOSE']) console.log(`${node.name}: ${line}`);
    const record = (line.startsWith('{') ? JSON.parse(line) : { level: WARN, msg: line }) as Record<string, unknown>;
    if (record['msg'] === 'the plan is applied') applied = true;
    if (record['level'] === 'warn' || record['level'] === 'error' || Number(record['level']) >= WARN)
      complaints.push(line);
  };
  return {
    node,
    complaints,
    async start() {
      applied = false;
      const entry = join(repository, 'apps/node-dataplane/dist/main.mjs');
      child = start([...inNamespace(node.name), process.execPath, entry, ...flagsOf(node)], onLine);
      const own = child;
      await until(`the agent of ${node.name} applies a plan`, () => {
        if (own.exitCode !== null) throw new Error(`the agent ended with ${own.exitCode}: ${complaints.join('\n')}`);
        return applied;
      });
    },
    end: async (signal) => {
      if (child) await end(child, signal);
    },
  };
};

/** The plan that the agent applied last. */
export const planOf = (node: VmNode): NodePlan =>
  JSON.parse(readFileSync(join(base, node.name, 'state/plan.json'), 'utf8')) as NodePlan;
