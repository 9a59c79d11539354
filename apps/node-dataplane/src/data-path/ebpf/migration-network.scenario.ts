import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { agentCommand } from '@unbounded/config/node-command';
import { createNetns, type Netns } from '@unbounded/netlink';
import type { FlowCount, FlowSettings } from '../../connectivity/keys/flow.scenario.ts';
import { endFlow, enterNode, overflowedIn, plugPod, run, until } from '../../connectivity/keys/rotation.scenario.ts';
import type { AgentOptions, AgentReport } from './migration-agent.scenario.ts';
import { type NodeName, NUMBERS } from './migration-objects.testdata.ts';

/**
 * Node a, whose agent is now of one layout and now of the next, and gateway b, whose agent stays. Numbered packets go both ways
 * between a's pod and b's, and between a's pod and a host behind b that a reaches by a group.
 */

const REPOSITORY = join(import.meta.dirname, '../../../../..');
const AGENT = join(import.meta.dirname, 'migration-agent.scenario.ts');
const STEPS = join(import.meta.dirname, 'migration-steps.testdata.ts');
/** Packets each way in each flow. */
const EVERY_MS = 1;
/** At least, also where agents start fast, or the machine is short of time. */
const LEAST_PACKETS = 10_001;

export type Layout = 'now' | 'next';
type RunOptions = Omit<AgentOptions, 'name' | 'objectPath' | 'via'>;

export interface MigrationNetwork extends AsyncDisposable {
  /** Runs a's agent for one pass, with the programs of its layout or of another. */
  agent(layout: Layout, options?: RunOptions, programs?: Layout): AgentReport;
  /** Runs a's agent until the step before which it is killed; what it was about to do. */
  crash(layout: Layout, step: number): string;
  /** Runs a command in node a. */
  inNode(...argv: string[]): string;
  /** What of the packets got lost until now; the flow goes on no more. */
  lost(): Promise<{ readonly sent: number; readonly lost: readonly string[] }>;
}

const KILLED = 128 + 9;

interface Node {
  readonly number: number;
  readonly netns: Netns;
  readonly pod: Netns;
  readonly podAddress: string;
  readonly enter: readonly string[];
  readonly inNode: (...argv: string[]) => string;
}

const makeNode = async (name: NodeName, root: string, undo: AsyncDisposableStack): Promise<Node> => {
  const folder = join(root, name);
  mkdirSync(join(folder, 'wireguard'), { recursive: true });
  const [netns, pod] = [undo.use(createNetns()), undo.use(createNetns())];
  const number = NUMBERS[name];
  const podAddress = `100.${64 + number}.${number}.10`;
  return { number, netns, pod, podAddress, ...(await enterNode(folder, netns, undo)) };
};

const connect = (a: Node, b: Node): void => {
  // By a path that this process's /proc has, which is not the node's.
  run(
    'nsenter',
    `--net=${a.netns.path}`,
    ...'ip link add eth0 type veth peer name eth0 netns'.split(' '),
    b.netns.path,
  );
  for (const { inNode, number } of [a, b]) {
    inNode('ip', 'link', 'set', 'lo', 'up');
    inNode('ip', 'addr', 'add', `10.7.0.${number}/24`, 'dev', 'eth0');
    inNode('ip', 'link', 'set', 'eth0', 'up');
    inNode('ip', 'route', 'add', 'default', 'via', '10.7.0.254');
  }
};

const FAR = '100.99.0.10';

/** The host behind b. */
const makeFar = (b: Node, undo: AsyncDisposableStack): Netns => {
  const far = undo.use(createNetns());
  const ip = (...argv: string[]): string => run('nsenter', `--net=${far.path}`, 'ip', ...argv);
  ip(...'link add eth0 type veth peer name far netns'.split(' '), b.netns.path);
  ip('addr', 'add', `${FAR}/16`, 'dev', 'eth0');
  ip('link', 'set', 'eth0', 'up');
  ip('route', 'add', 'default', 'via', '100.99.0.1');
  b.inNode('ip', 'addr', 'add', '100.99.0.1/16', 'dev', 'far');
  b.inNode('ip', 'link', 'set', 'far', 'up');
  return far;
};

/** With the capabilities that the chart gives the agent. */
const CONFINED = ['setpriv', '--bounding-set=-all,+net_admin,+net_raw,+perfmon,+bpf'];

/** Command lines of agents. */
const agentsOf = (root: string, via: 'clsact' | undefined) => {
  const next = join(root, 'bpf-next');
  execFileSync(join(REPOSITORY, 'bpf/build.sh'), [next], { env: { ...process.env, NEXT_LAYOUT: '1' } });
  const objects: Record<Layout, string> = { now: join(REPOSITORY, 'bpf/build'), next };
  return (name: NodeName, layout: Layout, options: RunOptions = {}, programs = layout): string[] => {
    const objectPath = join(objects[programs], 'unbounded_encap.bpf.o');
    const all: AgentOptions = { name, objectPath, ...(via === undefined ? {} : { via }), ...options };
    const conditions = layout === 'next' ? ['--conditions=next-layout'] : [];
    return [...CONFINED, ...agentCommand, ...conditions, '--import', STEPS, AGENT, JSON.stringify(all)];
  };
};

/** What the agent was about to do when it was killed. @throws Error when it was not */
const killedBefore = (agent: () => string): string => {
  try {
    agent();
  } catch (error) {
    const { status, signal, stderr } = error as { status: number | null; signal: string | null; stderr: string };
    const killed = /killed before step .*/.exec(stderr)?.[0];
    if (killed !== undefined && (status === KILLED || signal === 'SIGKILL')) return killed;
    throw error;
  }
  throw new Error('the agent has no such step');
};

/** Where the kernel counts packets that it drops. */
const COUNTERS = 'nstat -as; nft list counters; ip -s -s link; cat /proc/net/stat/nf_conntrack /proc/net/softnet_stat';

const isReached = ({ pod }: Node, address: string): boolean => {
  try {
    run('nsenter', `--net=${pod.path}`, 'ping', '-c1', '-W1', address);
    return true;
  } catch {
    return false;
  }
};

interface End {
  readonly address: string;
  readonly netns: Netns;
}

const startFlow = (from: End, to: End, port: number): Worker => {
  const ends = [from, to].map(({ address, netns }) => ({ address, netnsFd: netns.fd }));
  const workerData: FlowSettings = { ends, port, everyMs: EVERY_MS, least: LEAST_PACKETS };
  return new Worker(new URL('../../connectivity/keys/flow.scenario.ts', import.meta.url), { workerData });
};

export const makeMigrationNetwork = async (via: 'clsact' | undefined): Promise<MigrationNetwork> => {
  await using undo = new AsyncDisposableStack();
  const root = mkdtempSync(join(tmpdir(), 'migration-'));
  undo.defer(() => rmSync(root, { recursive: true, force: true }));
  const argv = agentsOf(root, via);
  const [a, b] = [await makeNode('a', root, undo), await makeNode('b', root, undo)];
  connect(a, b);
  const far = makeFar(b, undo);
  a.inNode('mkdir', '-p', '/sys/fs/bpf/somebody/thing', '/sys/fs/bpf/unbounded/notes');

  const stays = spawn('nsenter', [...b.enter, ...argv('b', 'now', { stays: true })], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  undo.defer(() => void stays.kill('SIGKILL'));
  await Promise.race([
    once(stays.stdout, 'data'),
    once(stays, 'exit').then(() => Promise.reject(new Error('the agent of b has ended'))),
  ]);
  const agent: MigrationNetwork['agent'] = (...how) => JSON.parse(a.inNode(...argv('a', ...how))) as AgentReport;
  agent('now');
  for (const node of [a, b]) plugPod({ ...node, run: node.inNode });
  for (const address of [b.podAddress, FAR]) await until(`a reaches ${address}`, () => isReached(a, address));

  const podOf = ({ podAddress, pod }: Node): End => ({ address: podAddress, netns: pod });
  const flows = [startFlow(podOf(a), podOf(b), 7000), startFlow(podOf(a), { address: FAR, netns: far }, 7001)];
  undo.defer(async () => void (await Promise.all(flows.map((flow) => flow.terminate()))));
  const all = undo.move();
  return {
    agent,
    inNode: a.inNode,
    crash: (layout, step) => killedBefore(() => a.inNode('env', `CRASH_BEFORE=${step}`, ...argv('a', layout))),
    async lost() {
      const counts: FlowCount[] = (await Promise.all(flows.map(endFlow))).flat();
      const overflowed = [a.pod, b.pod, far].reduce((sum, netns) => sum + overflowedIn(netns), 0);
      // On a machine that is short of time a burst may be too much for the test's own sockets: then it had arrived.
      const lostCount = counts.reduce((sum, count) => sum + count.lostCount, 0) - overflowed;
      const sent = Math.min(...counts.map((count) => count.sent));
      if (lostCount <= 0) return { sent, lost: [] };
      for (const { path } of [a.pod, a.netns, b.netns, b.pod, far])
        console.log(run('nsenter', `--net=${path}`, 'sh', '-c', COUNTERS));
      return { sent, lost: counts.map(({ from, lost }) => `from ${from}: ${lost.join(', ')}`) };
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
};
