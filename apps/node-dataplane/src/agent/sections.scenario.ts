/**
 * An agent with a second section, the example of CONTRIBUTING: what it makes, how it fails, what outlives the process, and what is
 * left when the section is no more. In namespaces of its own (sections.kernel.spec.ts), with the data path as argument; prints
 * what it saw as JSON.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { CNI_CONF_NAME, CNI_SOCKET, ROUTE_PROTOCOL, ROUTE_PROTOCOLS, STATE_FOLDER } from '@unbounded/config/ownership';
import type { HostServices } from '@unbounded/host';
import type { AgentConfig } from '../agent.config.ts';
import type { AgentReport } from '../world/reporter.port.ts';
import {
  addPod,
  lines,
  makeNode,
  OBJECTS,
  run,
  startAgent,
  until,
  writeObjects,
  writeUnreachableCluster,
} from './agent-node.testdata.ts';
import { example, type Trouble } from './example-section.testdata.ts';
import { sectionsOf } from './sections.ts';
import { printReport } from '../printed-report.testdata.ts';

interface Made {
  readonly routes: readonly string[];
  readonly chains: readonly string[];
  /** Files of kept plans. */
  readonly kept: readonly string[];
  /** Message of the section's condition; undefined: it has none. */
  readonly condition: string | undefined;
}

export interface Report {
  readonly made: Made;
  /** Netlink and file writes of two further passes. */
  readonly atRest: { readonly before: string; readonly after: string };
  /** While every pass of the section fails: its problem, and whether connectivity repairs a route of its own. */
  readonly failing: { readonly reasons: readonly string[]; readonly repaired: boolean };
  /** While the kernel refuses the section's chain. */
  readonly refused: { readonly reasons: readonly string[]; readonly chains: readonly string[] };
  /** While its hook hangs: the answers to its own pod and to another one's, in the order in which they came. */
  readonly hanging: readonly { readonly pod: string; readonly exitCode: number; readonly output: string }[];
  /** Files of host-local: after the first plan of a boot, and after that of a new process without the CNI list, while pods are there. */
  readonly reserved: { readonly afterBoot: readonly string[]; readonly withPods: readonly string[] };
  /** A new process without objects, after the section's route was deleted. */
  readonly restarted: Made;
  /** A new process without the section. */
  readonly removed: Made;
  readonly connectivityRoutes: readonly string[];
}

const dataplane = process.argv[2] as 'ebpf' | 'netlink';
const CLOSED = '192.0.2.0/24';
const TABLE = dataplane === 'ebpf' ? 'main' : '252';
const OWN = String(ROUTE_PROTOCOLS.last);

let last: AgentReport | undefined;
let reports = 0;
const reporter = {
  report: async (report: AgentReport) => {
    last = report;
    reports++;
  },
};
const conditionOf = (): string | undefined => last?.conditions.find(({ type }) => type === 'UnboundedExample')?.message;
/** Of problems of the section; connectivity has some of its own, as no peer of the node is there. */
const reasons = (): string[] => [
  ...new Set(last?.problems.flatMap(({ reason }) => (/^(Section|Example)/.test(reason) ? [reason] : []))),
];

const routesOf = (protocol: string, table: string): string[] =>
  lines('ip', 'route', 'show', 'table', table, 'proto', protocol).sort();
const chains = (): string[] =>
  lines('nft', 'list', 'chains', 'inet')
    .join('\n')
    .split('table ')
    .filter((table) => table.startsWith('inet unbounded_example '))
    .flatMap((table) => [...table.matchAll(/^chain (\S+) \{/gm)].map(([, name]) => name!));
const keptFiles = (): string[] =>
  readdirSync(STATE_FOLDER)
    .filter((name) => name.startsWith('plan'))
    .sort();
const made = (): Made => ({
  routes: routesOf(OWN, 'main'),
  chains: chains(),
  kept: keptFiles(),
  condition: conditionOf(),
});
const state = (): string =>
  [
    run('nft', '-s', 'list', 'ruleset'),
    ...[String(ROUTE_PROTOCOL), OWN].flatMap((protocol) => routesOf(protocol, 'all')),
    ...keptFiles().map((name) => readFileSync(join(STATE_FOLDER, name), 'utf8')),
  ].join('\n');

/** As a power cut and pods leave it. */
const RESERVATIONS = '/var/lib/cni/networks/unbounded';
const reserve = (address: string, content: string): void => {
  mkdirSync(RESERVATIONS, { recursive: true });
  writeFileSync(join(RESERVATIONS, address), content);
};
const reserved = (): string[] => readdirSync(RESERVATIONS).sort();
const list = join(dirname(CNI_SOCKET), CNI_CONF_NAME);

const withExample = (trouble: Trouble) => (config: AgentConfig, services: HostServices) => [
  ...sectionsOf(config, services),
  example(trouble),
];

/** The section fails at each pass: it has its problem, and connectivity repairs what is taken from it. */
const fail = async (trouble: Trouble): Promise<Report['failing']> => {
  trouble.pass = async () => Promise.reject(new Error('of the test'));
  run('ip', 'route', 'del', 'unreachable', CLOSED);
  await until('the section has failed', () => reasons().includes('SectionFailed'));
  const found = reasons();
  const [first] = routesOf(String(ROUTE_PROTOCOL), TABLE);
  const prefix = first!.replace(/^unreachable /, '').split(' ')[0]!;
  run('ip', 'route', 'del', prefix, 'table', TABLE);
  const has = (): boolean => routesOf(String(ROUTE_PROTOCOL), TABLE).includes(first!);
  await until('connectivity repairs its route', has);
  delete trouble.pass;
  await until('the section goes on', () => routesOf(OWN, 'main').length > 0 && reasons().length === 0);
  return { reasons: found, repaired: has() };
};

const refuse = async (trouble: Trouble): Promise<Report['refused']> => {
  trouble.set = 'x'.repeat(300); // longer than a name may be
  await until('the kernel refuses the table', () => reasons().includes('ExampleFirewallFailed'));
  const refused = { reasons: reasons(), chains: chains() };
  delete trouble.set;
  await until('the table is taken', () => reasons().length === 0);
  return refused;
};

const hang = async (trouble: Trouble): Promise<Report['hanging']> => {
  trouble.add = () => new Promise(() => undefined);
  const answers: Report['hanging'][number][] = [];
  const add = async (namespace: string, id: string): Promise<void> => {
    answers.push({ pod: namespace, ...(await addPod({ namespace, id })) });
  };
  await Promise.all([add('example', 'c1'), add('default', 'c2')]);
  delete trouble.add;
  await add('example', 'c3');
  return answers;
};

const main = async (): Promise<Report> => {
  makeNode();
  reserve('100.65.30.4', '');
  reserve('fd65:30::4', 'gone\r\neth0');
  reserve('last_reserved_ip.0', '100.65.30.4');
  writeObjects({ 'example.net/closed-prefix': CLOSED });
  const trouble: Trouble = {};
  const flags = ['--manifests-dir', OBJECTS];
  const options = { flags, sections: withExample(trouble), overrides: { reporter } };
  const { part } = await startAgent(dataplane, options);
  await until('the section has applied its plan', () => conditionOf() === CLOSED);
  const first = made();
  await until('the CNI list', () => existsSync(list));
  const afterBoot = reserved();
  const before = state();
  const counted = reports;
  await until('two further reports of each section', () => reports >= counted + 6);
  const atRest = { before, after: state() };
  const failing = await fail(trouble);
  const refused = await refuse(trouble);
  const hanging = await hang(trouble);
  reserve('100.65.30.9', 'c2\r\neth0');
  await part.stop();
  rmSync(list);

  run('ip', 'route', 'del', 'unreachable', CLOSED);
  last = undefined;
  const away = ['--kubeconfig', writeUnreachableCluster()];
  const again = await startAgent(dataplane, { ...options, flags: away, sections: withExample({}) });
  await until('the kept plan is applied', () => conditionOf() === CLOSED);
  const restarted = made();
  await until('the CNI list', () => existsSync(list));
  const withPods = reserved();
  await again.part.stop();

  writeObjects();
  last = undefined;
  const without = await startAgent(dataplane, { flags, overrides: { reporter } });
  await until('a report', () => last);
  const removed = made();
  const connectivityRoutes = routesOf(String(ROUTE_PROTOCOL), TABLE);
  await without.part.stop();
  const ofPods = { hanging, reserved: { afterBoot, withPods } };
  return { made: first, atRest, failing, refused, ...ofPods, restarted, removed, connectivityRoutes };
};

try {
  await printReport(await main());
  process.exit(0);
} catch (error) {
  console.error(error, last);
  process.exit(1);
}
