/**
 * A gateway with a second section that goes wrong in every way, beside connectivity, under a real API server and with the real
 * reporter. In namespaces of its own (troubled-section.kernel.spec.ts), with the data path as argument; prints what it saw as JSON.
 */
import type { HostServices } from '@unbounded/host';
import type { AgentConfig } from '../agent.config.ts';
import { type AgentCluster, GATEWAY, GATEWAY_ADDRESS, startCluster } from './agent-cluster.testdata.ts';
import { addPod, lines, makeNode, run, startAgent, until } from './agent-node.testdata.ts';
import { example, type Trouble } from './example-section.testdata.ts';
import { sectionsOf } from './sections.ts';
import { printReport } from '../printed-report.testdata.ts';

/** What must stay as it is whatever the second section does. */
interface Connectivity {
  readonly table: string;
  readonly routes: readonly string[];
  readonly tunnelsUp: readonly string[];
  readonly network: string;
}

export interface Seen {
  readonly connectivity: Connectivity;
  /** Messages of problems of the second section on the Node. */
  readonly problem: string;
  /** Exit code and message of ADD for a pod of the section, and for another one. */
  readonly own: readonly [exitCode: number, message: string];
  readonly other: readonly [exitCode: number, message: string];
}

export interface Report {
  readonly before: Connectivity;
  readonly failsToOpen: Seen;
  readonly opened: Seen;
  readonly throwsInConcerns: Seen;
  readonly hangsInAdd: Seen;
  readonly hangsInReport: Seen;
  /** While the agent stops, its section hangs. */
  readonly stopping: readonly [exitCode: number, message: string];
  readonly refusedAfterRestart: Seen;
  /** Between two signs of life of the gateway, of the first process, at most. */
  readonly longestSilenceMs: number;
  /** The section's table, before and after the restart. */
  readonly tables: readonly [string, string];
}

const dataplane = process.argv[2] as 'ebpf' | 'netlink';
const OPENS_AFTER_MS = 20_000;
const CLOSED = '192.0.2.0/24';

let pods = 0;
const addTo = async (namespace: string): Promise<readonly [number, string]> => {
  const { exitCode, output } = await addPod({ namespace, id: `c${++pods}` });
  return [exitCode, exitCode === 0 ? '' : (JSON.parse(output) as { readonly msg: string }).msg];
};

const connectivityOf = async (cluster: AgentCluster): Promise<Connectivity> => {
  const network = await cluster.condition('NetworkUnavailable');
  return {
    table: run('nft', '-s', 'list', 'table', 'inet', 'unbounded'),
    routes: lines('ip', 'route', 'show', 'table', 'all', 'proto', '117').sort(),
    tunnelsUp: lines('ip', '-o', 'link', 'show', 'up')
      .flatMap((line) => /^\d+: (vxlan\S*|geneve\S*|unbounded\S*|wg\S*):/.exec(line)?.[1] ?? [])
      .sort(),
    network: `${network?.status} ${network?.reason}`,
  };
};

const problemOf = async (cluster: AgentCluster): Promise<string> => {
  const { message = '' } = (await cluster.condition('UnboundedNetworkDegraded')) ?? {};
  return message
    .split('; ')
    .filter((part) => part.includes('section example'))
    .join('; ');
};

/** Everything at once, when the Node tells of the section's problem. */
const look = async (cluster: AgentCluster, isExpected: (problem: string) => boolean): Promise<Seen> => {
  await until('the Node tells of it', async () => isExpected(await problemOf(cluster)));
  const [own, other] = await Promise.all([addTo('example'), addTo('default')]);
  return { connectivity: await connectivityOf(cluster), problem: await problemOf(cluster), own, other };
};

/** Collects the signs of life of the gateway. */
const watchSigns = (cluster: AgentCluster) => {
  const signs = new Set<string>();
  const looking = setInterval(() => void cluster.lastSignOfLife().then((sign) => sign !== '' && signs.add(sign)), 500);
  return {
    count: () => signs.size,
    end(): number {
      clearInterval(looking);
      const times = [...signs].map((sign) => Date.parse(sign)).sort((a, b) => a - b);
      return Math.max(...times.slice(1).map((time, index) => time - times[index]!));
    },
  };
};
const table = (): string => run('nft', '-s', 'list', 'table', 'inet', 'unbounded_example');
const isWell = (problem: string): boolean => problem === '';

const firstProcess = async (cluster: AgentCluster, start: (trouble: Trouble) => ReturnType<typeof startAgent>) => {
  const startedMs = performance.now();
  let isLookedAt = false;
  const trouble: Trouble = {
    open: async () => {
      if (!isLookedAt || performance.now() - startedMs < OPENS_AFTER_MS) throw new Error('no module yet');
    },
  };
  const { part } = await start(trouble);
  const signs = watchSigns(cluster);
  await until('the gateway is alive', () => signs.count() > 0);
  const before = await connectivityOf(cluster);
  const failsToOpen = await look(cluster, (problem) => problem.includes('no module yet'));
  isLookedAt = true;
  await until('the section is open', async () => (await cluster.condition('UnboundedExample'))?.message === CLOSED);
  const opened = await look(cluster, isWell);
  trouble.add = () => new Promise(() => undefined);
  await addTo('example');
  const hangsInAdd = await look(cluster, isWell);
  delete trouble.add;
  trouble.write = () => new Promise(() => undefined);
  const hangsInReport = await look(cluster, (problem) => problem.includes('cannot write what it reports'));
  trouble.concerns = (namespace) => {
    if (namespace === 'example') throw new Error('no such policy');
  };
  await addTo('example'); // the first one finds it out
  const throwsInConcerns = await look(cluster, (problem) => problem.includes('no such policy'));
  const known = signs.count();
  await until('a sign of life meanwhile', () => signs.count() > known);
  const longestSilenceMs = signs.end();
  trouble.stop = () => new Promise(() => undefined);
  const stopped = part.stop();
  const stopping = await addTo('example');
  await stopped;
  return { before, failsToOpen, opened, throwsInConcerns, hangsInAdd, hangsInReport, stopping, longestSilenceMs };
};

const main = async (): Promise<Report> => {
  makeNode(GATEWAY_ADDRESS);
  const cluster = await startCluster({ 'example.net/closed-prefix': CLOSED });
  const start = (trouble: Trouble): ReturnType<typeof startAgent> =>
    startAgent(dataplane, {
      node: GATEWAY,
      flags: ['--kubeconfig', cluster.kubeconfig],
      sections: (config: AgentConfig, services: HostServices) => [...sectionsOf(config, services), example(trouble)],
    });
  const first = await firstProcess(cluster, start);
  const tableBefore = table();
  const { part } = await start({ set: 'x'.repeat(300) });
  const refusedAfterRestart = await look(cluster, (problem) => problem !== '');
  const tables = [tableBefore, table()] as const;
  await part.stop();
  await cluster.stop();
  return { ...first, refusedAfterRestart, tables };
};

try {
  await printReport(await main());
  process.exit(0);
} catch (error) {
  console.error(error);
  process.exit(1);
}
