import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { conformanceImages } from './conformance-images.ts';
import { inNamespace, runAsync } from '../../machine/command.ts';
import { kubeconfigFile, kubectl } from '../../kubernetes/control-plane.ts';
import { makeImages } from './images.ts';
import { type LabLayout, namespaceOf } from '../../layout/layout.ts';
import { inNode } from '../../node/node.ts';
import { binary, imageFile, state } from '../../machine/paths.ts';

/** The unmodified Kubernetes end-to-end suite as judge of the lab's network. */

export interface ConformanceOptions {
  /** Regular expression over the names of specs. */
  readonly focus: string;
  readonly skip: string;
  /** Specs that run at once. */
  readonly processes: number;
}

export const CONFORMANCE: ConformanceOptions = {
  focus: String.raw`\[sig-network\].*\[Conformance\]`,
  skip: String.raw`\[Serial\]`,
  processes: 4,
};

/** On a dual-stack lab; but for SCTP, which needs a kernel with it (this suite does not ask whether there is one). */
export const DUAL_STACK: ConformanceOptions = {
  focus: String.raw`\[Feature:IPv6DualStack\]`,
  skip: String.raw`\[Feature:SCTPConnectivity\]`,
  processes: 4,
};

/** Less than who calls has (conformance.matrix.spec.ts): a suite that hangs still writes its report. */
const DEADLINE = '25m';
const WATCH_EVERY_MS = 3000;
/** Nodes with these taints get no pods and are not waited for. */
const TAINTS = 'node-role.kubernetes.io/control-plane,net.unbounded-cloud.io/gateway-node';
const folder = join(state, 'conformance');
const report = join(folder, 'junit.xml');

const importImages = async (layout: LabLayout): Promise<void> => {
  const specs = conformanceImages();
  await makeImages(specs);
  for (const node of layout.nodes.filter(({ role }) => role !== 'gateway')) {
    const present = await runAsync([...inNode(node.name), 'ctr', '-n', 'k8s.io', 'images', 'list', '-q']);
    for (const [name, { reference }] of Object.entries(specs)) {
      if (!present.includes(reference))
        await runAsync([...inNode(node.name), 'ctr', '-n', 'k8s.io', 'images', 'import', imageFile(name)]);
    }
  }
};

interface PodItem {
  metadata: { namespace: string; uid: string };
  spec: { nodeName?: string; hostNetwork?: boolean };
}

/** Counts the suite's pods by site for as long as it runs: specs whose pods all are in one site would prove little. */
const watchSpread = (layout: LabLayout): (() => Promise<Map<string, number>>) => {
  const seen = new Map<string, Set<string>>(layout.sites.map(({ name }) => [name, new Set()]));
  let running = true;
  const look = async (): Promise<void> => {
    const { items } = JSON.parse(await kubectl(layout, ['get', 'pods', '-A', '-o', 'json'])) as { items: PodItem[] };
    for (const { metadata, spec } of items) {
      const site = layout.nodes.find(({ name }) => name === spec.nodeName)?.site;
      const isPodOfSpec = !spec.hostNetwork && !['default', 'kube-system'].includes(metadata.namespace);
      if (site !== undefined && isPodOfSpec) seen.get(site)!.add(metadata.uid);
    }
  };
  const loop = (async () => {
    while (running) {
      await look().catch(() => undefined); // a missed look leaves the count lower, no more
      await delay(WATCH_EVERY_MS);
    }
  })();
  return async () => {
    running = false;
    await loop;
    return new Map([...seen].map(([site, pods]) => [site, pods.size]));
  };
};

const suiteCommand = (layout: LabLayout, { focus, skip, processes }: ConformanceOptions): string[] => [
  ...inNamespace(namespaceOf(layout.controlPlane.name)),
  binary('ginkgo'),
  `--procs=${processes}`,
  `--focus=${focus}`,
  `--skip=${skip}`,
  `--timeout=${DEADLINE}`,
  '--no-color',
  '--silence-skips',
  '--succinct',
  `--junit-report=${report}`,
  binary('e2e.test'),
  '--',
  `--kubeconfig=${kubeconfigFile('admin')}`,
  '--provider=skeleton',
  `--non-blocking-taints=${TAINTS}`,
  // Without it only the first of the processes counts the nodes, and the others skip what needs two.
  `--num-nodes=${layout.nodes.filter(({ role }) => role !== 'gateway').length}`,
  '--dump-logs-on-failure=false',
  '--disable-log-dump',
];

export interface SpecResult {
  readonly name: string;
  readonly passed: boolean;
  /** Why the spec itself gave up: it was begun, and proves nothing. */
  readonly skipped?: string;
  readonly seconds: number;
}

const unescape = (text: string): string =>
  text
    .replaceAll('&#34;', '"')
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&amp;', '&');

/** The specs that began, from the suite's JUnit report (elements `testcase` and `skipped`, as ginkgo writes them). */
export const readReport = (xml: string): SpecResult[] =>
  [...xml.matchAll(/<testcase ([^>]*)>(?:\s*<skipped message="skipped - ([^"]*)")?/g)].flatMap(
    ([, attributes = '', reason]) => {
      const value = (name: string): string => unescape(new RegExp(`\\b${name}="([^"]*)"`).exec(attributes)?.[1] ?? '');
      const [name, status] = [value('name'), value('status')];
      const isLeftOut = (status === 'skipped' && reason === undefined) || status === 'pending';
      if (!name.startsWith('[It]') || isLeftOut) return [];
      const passed = status === 'passed';
      const skipped = reason === undefined ? {} : { skipped: unescape(reason) };
      return [{ name: name.slice('[It] '.length), passed, seconds: Number(value('time')), ...skipped }];
    },
  );

const runSuite = (argv: readonly string[]): Promise<number> =>
  new Promise((resolve, reject) => {
    const child = spawn(argv[0]!, argv.slice(1), { stdio: ['ignore', 'inherit', 'inherit'], cwd: folder });
    child.on('error', reject);
    child.on('close', (code) => resolve(code ?? 1));
  });

const wordOf = ({ passed, skipped }: SpecResult): string =>
  skipped === undefined ? (passed ? 'passed' : 'FAILED') : `skipped (${skipped})`;

/** Runs the suite and prints what passed. Returns whether every spec did, none gave up, and any ran. */
export const conformance = async (layout: LabLayout, options: ConformanceOptions): Promise<boolean> => {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  await importImages(layout);
  const spreadSeen = watchSpread(layout);
  const code = await runSuite(suiteCommand(layout, options));
  const spread = await spreadSeen();
  const specs = readReport(readFileSync(report, 'utf8')).toSorted((a, b) => b.seconds - a.seconds);
  const passed = specs.filter((spec) => spec.passed);
  const skipped = specs.filter((spec) => spec.skipped !== undefined);
  for (const spec of specs) console.log(`${spec.seconds.toFixed(1).padStart(7)} s  ${wordOf(spec)}  ${spec.name}`);
  console.log(`pods of the specs: ${[...spread].map(([site, pods]) => `${pods} in ${site}`).join(', ')}`);
  const failed = specs.length - passed.length - skipped.length;
  console.log(`${passed.length} passed, ${failed} failed, ${skipped.length} gave up`);
  return code === 0 && passed.length === specs.length && specs.length > 0;
};
