import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { conformanceImages } from './conformance-images.ts';
import { inNamespace, runAsync } from './command.ts';
import { kubeconfigFile, kubectl } from './control-plane.ts';
import { makeImages } from './images.ts';
import { type LabLayout, namespaceOf } from './layout.ts';
import { inNode } from './node.ts';
import { binary, imageFile, state } from './paths.ts';

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

const DEADLINE = '45m';
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
  '--dump-logs-on-failure=false',
  '--disable-log-dump',
];

export interface SpecResult {
  readonly name: string;
  readonly passed: boolean;
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

/** The specs that ran, from the suite's JUnit report (attributes of `testcase`, as ginkgo writes them). */
export const readReport = (xml: string): SpecResult[] =>
  [...xml.matchAll(/<testcase ([^>]*)>/g)].flatMap(([, attributes = '']) => {
    const value = (name: string): string => unescape(new RegExp(`\\b${name}="([^"]*)"`).exec(attributes)?.[1] ?? '');
    const name = value('name');
    const status = value('status');
    if (!name.startsWith('[It]') || status === 'skipped' || status === 'pending') return [];
    return [{ name: name.slice('[It] '.length), passed: status === 'passed', seconds: Number(value('time')) }];
  });

const runSuite = (argv: readonly string[]): Promise<number> =>
  new Promise((resolve, reject) => {
    const child = spawn(argv[0]!, argv.slice(1), { stdio: ['ignore', 'inherit', 'inherit'], cwd: folder });
    child.on('error', reject);
    child.on('close', (code) => resolve(code ?? 1));
  });

/** Runs the suite and prints what passed. Returns whether every spec did, and any ran. */
export const conformance = async (layout: LabLayout, options: ConformanceOptions): Promise<boolean> => {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  await importImages(layout);
  const spreadSeen = watchSpread(layout);
  const code = await runSuite(suiteCommand(layout, options));
  const spread = await spreadSeen();
  const specs = readReport(readFileSync(report, 'utf8')).toSorted((a, b) => b.seconds - a.seconds);
  const failed = specs.filter(({ passed }) => !passed);
  for (const { name, passed, seconds } of specs)
    console.log(`${seconds.toFixed(1).padStart(7)} s  ${passed ? 'passed' : 'FAILED'}  ${name}`);
  console.log(`pods of the specs: ${[...spread].map(([site, pods]) => `${pods} in ${site}`).join(', ')}`);
  console.log(`${specs.length - failed.length} passed, ${failed.length} failed`);
  return code === 0 && failed.length === 0 && specs.length > 0;
};
