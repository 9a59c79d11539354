import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { NODE_APPS } from '../apps/agents.ts';
import { agentPids } from '../machine/cgroups.ts';
import { inNamespace, run, tryRun } from '../machine/command.ts';
import { pidOf } from '../machine/daemon.ts';
import { type LabLayout, type LabNode, namespaceOf } from '../layout/layout.ts';
import { initPid } from '../node/node.ts';
import { nodeDir } from '../machine/paths.ts';
import { timeUntil } from './scenario.ts';
import { startAgent } from '../substrate/agents.ts';
import { substrateOf } from '../substrate/substrates.ts';

/** Turns a node off and on: of its kernel's state nothing stays but its cables, and of its files what is on its disk. */

const CABLES = new Set(['lo', 'eth0', 'eth1']);

type Inside = (...argv: string[]) => string;

/** ip(8) of Debian 12 does not say who made an address; no other ones are deprecated here. */
const flushEgressAddresses = (inside: Inside): void => {
  const links = JSON.parse(inside('ip', '-j', 'address')) as {
    ifname: string;
    addr_info: { local: string; prefixlen: number; deprecated?: boolean }[];
  }[];
  for (const { ifname, addr_info } of links)
    for (const { local, prefixlen, deprecated } of addr_info)
      if (deprecated) inside('ip', 'address', 'delete', `${local}/${prefixlen}`, 'dev', ifname);
};

/** Everything that programs have put into the node's network namespace. */
const wipeNetwork = (node: LabNode): void => {
  const inside: Inside = (...argv) => run([...inNamespace(namespaceOf(node.name)), ...argv]);
  const links = JSON.parse(inside('ip', '-j', 'link')) as { ifname: string }[];
  for (const { ifname } of links.filter((link) => !CABLES.has(link.ifname))) {
    // The other end of a veth went with the first.
    tryRun([...inNamespace(namespaceOf(node.name)), 'ip', 'link', 'delete', ifname]);
  }
  inside('nft', 'flush', 'ruleset');
  for (const family of ['-4', '-6']) {
    tryRun([...inNamespace(namespaceOf(node.name)), 'ip', family, 'route', 'flush', 'proto', '117', 'table', 'all']);
    tryRun([...inNamespace(namespaceOf(node.name)), 'ip', family, 'rule', 'flush', 'proto', '117']);
    tryRun([...inNamespace(namespaceOf(node.name)), 'ip', family, 'nexthop', 'flush']);
  }
  flushEgressAddresses(inside);
  inside('sysctl', '-qw', 'net.ipv4.ip_forward=0', 'net.ipv6.conf.all.forwarding=0');
  tryRun([...inNamespace(namespaceOf(node.name)), 'conntrack', '-F']);
};

const OFF_MS = 10_000;
const ON_MS = 30_000;

/** The power goes: no process of the node gets to do anything. */
export const turnOff = async (node: LabNode): Promise<void> => {
  const pid = initPid(node.name);
  process.kill(pid, 'SIGKILL'); // of the node's pid namespace the first: all others go with it
  const left = (): number[] => [
    ...[pidOf(`node-${node.name}`)].filter((daemon) => daemon !== undefined),
    ...NODE_APPS.flatMap((app) => agentPids(node.name, app)),
  ];
  await timeUntil(`${node.name} is off`, () => left().length === 0, OFF_MS).catch((error: unknown) => {
    const looks = tryRun(['ps', '-o', 'pid,ppid,stat,wchan:32,args', '-p', left().join()]);
    throw new Error(`${(error as Error).message}: what is left of it:\n${looks}`);
  });
  wipeNetwork(node);
};

/** The node starts; `beforeAgents`: what its disk, clock or network are like this time. */
export const turnOn = async (
  layout: LabLayout,
  node: LabNode,
  { beforeAgents = () => undefined, env = {} }: { beforeAgents?: () => void; env?: NodeJS.ProcessEnv } = {},
): Promise<void> => {
  rmSync(join(nodeDir(node.name), 'made'), { force: true });
  substrateOf(layout).startNode(layout, node);
  const isUp = (): boolean => tryRun(['test', '-e', join(nodeDir(node.name), 'made')]) !== undefined;
  await timeUntil(`${node.name} is on`, isUp, ON_MS);
  beforeAgents();
  for (const app of substrateOf(layout).nodeApps(layout)) await startAgent(layout, node, app, env);
};
