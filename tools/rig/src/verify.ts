import { existsSync } from 'node:fs';
import { inNamespace, runAsync } from './command.ts';
import { type ConditionsSeen, lookAtConditions } from './conditions.ts';
import { kubectl, kubectlCommand } from './control-plane.ts';
import { familyOf, hostOf, PLANS } from './addresses.ts';
import { type LabLayout, type LabNode, namespaceOf } from './layout.ts';
import { describeLinks } from './links.ts';
import { NODE_PORT, PROBES, worldUrls } from './manifests.ts';
import { initPid } from './node.ts';
import { binary } from './paths.ts';

/** Shows that every pod reaches everything that it should: the lab's proof, in real packets. */

export interface Pod {
  readonly name: string;
  readonly node: string;
  readonly site: string;
  /** One of each family; the first is the primary one. */
  readonly ips: readonly string[];
  /** The primary of them. */
  readonly ip: string;
}

/** One thing that was tried. `from` and `to` are pods, nodes or services. */
export interface Check {
  readonly from: string;
  readonly to: string;
  readonly what: string;
  readonly ok: boolean;
  readonly error?: string;
  readonly rttMicros?: number;
}

interface Target {
  readonly name: string;
  readonly address: string;
  readonly port: number;
  readonly checks: readonly ('icmp' | 'udp' | 'tcp' | 'connect')[];
}

const ECHO_PORT = 9000;
const SINK_PORT = 9001;
const KUBELET_PORT = 10250;
const STREAM_MEBIBYTES = 64;
const IN_PARALLEL = 3;
const EXEC_DEADLINE_MS = 90_000;

interface PodItem {
  metadata: { name: string };
  spec: { nodeName: string };
  status: { podIPs?: { ip: string }[] };
}

export const probePods = async (layout: LabLayout): Promise<Pod[]> => {
  const { items } = JSON.parse(await kubectl(layout, ['get', 'pods', '-l', 'app=probe', '-o', 'json'])) as {
    items: PodItem[];
  };
  return items
    .filter((item) => item.status.podIPs?.[0])
    .map((item) => ({
      name: item.metadata.name,
      node: item.spec.nodeName,
      site: layout.nodes.find((node) => node.name === item.spec.nodeName)?.site ?? '?',
      ips: item.status.podIPs!.map(({ ip }) => ip),
      ip: item.status.podIPs![0]!.ip,
    }))
    .sort((a, b) => a.node.localeCompare(b.node) || a.name.localeCompare(b.name));
};

/** Runs the probe inside a pod, by kubectl exec. */
export const inPod = (layout: LabLayout, pod: Pod, args: readonly string[], input?: string): Promise<string> =>
  runAsync(
    [...kubectlCommand(layout), 'exec', ...(input === undefined ? [] : ['-i']), pod.name, '--', '/probe', ...args],
    {
      timeoutMs: EXEC_DEADLINE_MS,
      ...(input === undefined ? {} : { input }),
    },
  );

const inNodeNamespace = (node: string): string[] => [...inNamespace(namespaceOf(node)), binary('probe')];

/** Maps with at most {@link IN_PARALLEL} at work: each check is a process on a small machine. */
const mapLimited = async <T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> => {
  const results: R[] = [];
  const queue = [...items.entries()];
  await Promise.all(
    Array.from({ length: IN_PARALLEL }, async () => {
      for (let next = queue.shift(); next; next = queue.shift()) results[next[0]] = await work(next[1]);
    }),
  );
  return results;
};

const attempt = async (check: Omit<Check, 'ok'>, work: () => Promise<string | undefined>): Promise<Check> => {
  try {
    const problem = await work();
    return problem === undefined ? { ...check, ok: true } : { ...check, ok: false, error: problem };
  } catch (error) {
    return { ...check, ok: false, error: (error as Error).message };
  }
};

interface ProbeResult {
  name: string;
  check: string;
  ok: boolean;
  error?: string;
  rttMicros: number;
}

/** Runs the probe's matrix and turns its answer into checks; when it cannot run at all, every target failed. */
const matrixChecks = async (
  from: string,
  targets: readonly Target[],
  runProbe: (input: string) => Promise<string>,
): Promise<Check[]> => {
  try {
    const results = JSON.parse(await runProbe(JSON.stringify(targets))) as ProbeResult[];
    return results.map(({ name, check, ok, error, rttMicros }) => ({
      from,
      to: name,
      what: check,
      ok,
      rttMicros,
      ...(error ? { error } : {}),
    }));
  } catch (error) {
    return targets.map(({ name }) => ({ from, to: name, what: 'matrix', ok: false, error: (error as Error).message }));
  }
};

const podTargets = (pod: Pod): Target[] =>
  pod.ips.map((address) => ({ name: pod.name, address, port: ECHO_PORT, checks: ['icmp', 'udp', 'tcp'] }));
const nodeTargets = (node: LabNode): Target[] =>
  node.internalIps.map((address) => ({
    name: node.name,
    address,
    port: KUBELET_PORT,
    checks: ['icmp', 'connect'],
  }));
const apiTarget = (layout: LabLayout): Target => {
  const address = PLANS[layout.families[0]!].services.apiServer;
  return { name: 'service/kubernetes', address, port: 443, checks: ['connect'] };
};

const podMatrix = (layout: LabLayout, pods: readonly Pod[], mtu: number): Promise<Check[]> =>
  mapLimited(pods, (pod) => {
    const targets = [
      ...pods.filter((other) => other !== pod).flatMap(podTargets),
      ...layout.nodes.flatMap(nodeTargets),
      apiTarget(layout),
    ];
    return matrixChecks(pod.name, targets, (input) => inPod(layout, pod, ['matrix', String(mtu)], input));
  }).then((lists) => lists.flat());

const nodeMatrix = (layout: LabLayout, pods: readonly Pod[], mtu: number): Promise<Check[]> =>
  mapLimited(layout.nodes, (node) =>
    matrixChecks(node.name, pods.flatMap(podTargets), (input) =>
      runAsync([...inNodeNamespace(node.name), 'matrix', String(mtu)], { input, timeoutMs: EXEC_DEADLINE_MS }),
    ),
  ).then((lists) => lists.flat());

const isWanAddress = (text: string): boolean => /^(203\.0\.113\.|2001:db8:203:)/.test(text.trim().replace('[', ''));

/** Name resolution, Services and the outside world, from every pod. */
const serviceChecks = async (layout: LabLayout, pods: readonly Pod[]): Promise<Check[]> => {
  const clusterIps = JSON.parse(
    await kubectl(layout, ['get', 'service', 'probe', '-o', 'jsonpath={.spec.clusterIPs}']),
  ) as string[];
  const fetched = (
    ends: { from: string; to: string; url: string },
    judge: (body: string) => string | undefined,
    run: (args: string[]) => Promise<string>,
  ) => attempt({ from: ends.from, to: ends.to, what: 'http' }, async () => judge(await run(['fetch', ends.url])));
  const named = (body: string): string | undefined =>
    pods.some(({ name }) => name === body.trim()) ? undefined : `answered by ${body}`;
  const perPod = await mapLimited(pods, async (pod) => {
    const run = (args: string[]): Promise<string> => inPod(layout, pod, args);
    const checks: Check[] = [];
    for (const ip of clusterIps)
      checks.push(await fetched({ from: pod.name, to: 'service/probe', url: `http://${hostOf(ip)}/` }, named, run));
    checks.push(
      await attempt({ from: pod.name, to: 'dns', what: 'resolve' }, async () => {
        const answer = await run(['resolve', 'probe.default.svc.cluster.local']);
        return clusterIps.every((ip) => answer.includes(ip)) ? undefined : `resolved to ${answer}`;
      }),
    );
    for (const url of worldUrls(layout))
      checks.push(
        await fetched(
          { from: pod.name, to: 'outside', url },
          (seen) => (isWanAddress(seen) ? undefined : `seen outside as ${seen.trim()}`),
          run,
        ),
      );
    return checks;
  });
  const nodePorts = layout.nodes.flatMap((node) => node.internalIps.map((address) => ({ node, address })));
  const perNode = await mapLimited(nodePorts, ({ node, address }) => {
    const other = layout.nodes.find((candidate) => candidate.site === node.site && candidate !== node) ?? node;
    const run = (args: string[]): Promise<string> => runAsync([...inNodeNamespace(other.name), ...args]);
    const url = `http://${hostOf(address)}:${NODE_PORT}/`;
    return fetched({ from: other.name, to: `${node.name}:${NODE_PORT}`, url }, named, run);
  });
  return [...perPod.flat(), ...perNode];
};

/** kubectl logs and exec in every site: the API server reaches kubelets through the overlay. */
const kubectlChecks = (layout: LabLayout, pods: readonly Pod[]): Promise<Check[]> =>
  mapLimited(layout.sites, async (site) => {
    const pod = pods.find((candidate) => candidate.site === site.name);
    if (!pod) return [{ from: 'kubectl', to: site.name, what: 'logs', ok: false, error: 'the site has no test pod' }];
    return [
      await attempt({ from: 'kubectl', to: pod.name, what: 'logs' }, async () => {
        await kubectl(layout, ['logs', pod.name, '--tail=1']);
        return undefined;
      }),
      await attempt({ from: 'kubectl', to: pod.name, what: 'exec' }, async () => {
        const answer = await inPod(layout, pod, [
          'fetch',
          `http://${layout.families[0] === 4 ? '127.0.0.1' : '[::1]'}:8080/`,
        ]);
        return answer.trim() === pod.name ? undefined : `answered by ${answer}`;
      }),
    ];
  }).then((lists) => lists.flat());

export type PathClass = 'same node' | 'same site' | 'cross-site';
export const pathClass = (a: Pod, b: Pod): PathClass =>
  a.node === b.node ? 'same node' : a.site === b.site ? 'same site' : 'cross-site';

/** One pair of pods per class and direction. */
const streamPairs = (pods: readonly Pod[]): [Pod, Pod][] => {
  const pairs: [Pod, Pod][] = [];
  for (const wanted of ['same node', 'same site', 'cross-site'] as const) {
    // The two last nodes of a site are workers; gateways and the control plane come first in the order of names.
    for (const a of pods.toReversed()) {
      const b = pods.toReversed().find((other) => other !== a && pathClass(a, other) === wanted);
      if (!b) continue;
      pairs.push([a, b], [b, a]);
      break;
    }
  }
  return pairs;
};

const streamChecks = async (layout: LabLayout, pods: readonly Pod[]): Promise<Check[]> => {
  const checks: Check[] = [];
  const streams = streamPairs(pods).flatMap(([from, to]) => to.ips.map((ip) => ({ from, to, ip })));
  for (const { from, to, ip } of streams) {
    let speed = '';
    const family = layout.families.length > 1 ? ` IPv${familyOf(ip)}` : '';
    const check = await attempt(
      { from: from.name, to: to.name, what: `stream ${pathClass(from, to)}${family}` },
      async () => {
        const answer = JSON.parse(
          await inPod(layout, from, ['stream', `${hostOf(ip)}:${SINK_PORT}`, String(STREAM_MEBIBYTES)]),
        ) as { megabitsPerSecond: number };
        speed = `${answer.megabitsPerSecond.toFixed(0)} Mbit/s`;
        return undefined;
      },
    );
    checks.push({ ...check, what: `${check.what} ${speed}`.trim() });
  }
  return checks;
};

/** MTU of the pods' interface, asked on a node: all pods of the lab have the same. */
const podMtu = async (node: string): Promise<number> => {
  const links = JSON.parse(
    await runAsync([...inNamespace(namespaceOf(node)), 'ip', '-j', 'link', 'show', 'type', 'veth']),
  ) as { ifname: string; mtu: number }[];
  const mtu = links.find(({ ifname }) => ifname.startsWith('veth'))?.mtu;
  if (mtu === undefined) throw new Error(`node ${node} has no pod interface`);
  return mtu;
};

/** The pairs of nodes as a table, rows send and columns answer: a dot where everything passed, the number of failures otherwise. */
export const reachabilityTable = (layout: LabLayout, pods: readonly Pod[], checks: readonly Check[]): string => {
  const nodeOf = (name: string): string | undefined =>
    pods.find((pod) => pod.name === name)?.node ?? layout.nodes.find((node) => node.name === name)?.name;
  const names = layout.nodes.map(({ name }) => name);
  const width = Math.max(...names.map((name) => name.length)) + 1;
  const cell = (from: string, to: string): string => {
    const between = checks.filter((check) => nodeOf(check.from) === from && nodeOf(check.to) === to);
    const failed = between.filter(({ ok }) => !ok).length;
    return between.length === 0 ? ' ' : failed === 0 ? '·' : `${failed}!`;
  };
  const row = (label: string, cells: readonly string[]): string =>
    label.padEnd(width) + cells.map((text) => text.padStart(width)).join('');
  return [
    row('', names),
    ...names.map((from) =>
      row(
        from,
        names.map((to) => cell(from, to)),
      ),
    ),
  ].join('\n');
};

const timed = async (what: string, work: () => Promise<Check[]>): Promise<Check[]> => {
  const start = Date.now();
  const checks = await work();
  const failed = checks.filter(({ ok }) => !ok).length;
  console.log(
    `  ${what.padEnd(44)}${String(checks.length).padStart(6)} checks${String(failed).padStart(5)} failed${((Date.now() - start) / 1000).toFixed(1).padStart(7)} s`,
  );
  return checks;
};

/** Sites, pools, peerings and nodes: one check for all that is well, and one for each statement that something is not. */
const conditionChecks = ({ objects, bad }: ConditionsSeen): Check[] => [
  { from: 'kubernetes', to: 'conditions', what: `of ${objects} objects`, ok: true },
  ...bad.map((error) => ({ from: 'kubernetes', to: 'conditions', what: 'condition', ok: false, error })),
];

const printResults = async (layout: LabLayout, checks: readonly Check[], able: ReadonlySet<string>): Promise<void> => {
  for (const check of checks.filter(({ what, ok }) => ok && what.startsWith('stream')))
    console.log(`  ${check.what}: ${check.from} -> ${check.to}`);
  for (const line of await describeLinks(layout, able)) console.log(`  links ${line}`);
  const failures = checks.filter(({ ok }) => !ok);
  for (const { from, to, what, error } of failures.slice(0, 40))
    console.log(`  FAILED ${from} -> ${to} ${what}: ${error?.split('\n').at(-1)}`);
  if (failures.length > 40) console.log(`  … and ${failures.length - 40} more`);
};

const LEGEND = 'rows send, columns answer: · everything passed, 2! two checks failed';

/** Runs every check, prints the matrix and what failed. Returns whether all passed. */
export const verify = async (layout: LabLayout): Promise<boolean> => {
  const start = Date.now();
  if (!existsSync(binary('probe'))) throw new Error(`${binary('probe')} is missing: run tools/setup lab`);
  initPid(layout.controlPlane.name); // a clear error when there is no lab
  const pods = await probePods(layout);
  const expected = layout.nodes.length * PROBES.length;
  const mtu = await podMtu(layout.controlPlane.name);
  console.log(`${pods.length} test pods on ${layout.nodes.length} nodes, pod MTU ${mtu}`);
  let seen: ConditionsSeen = { objects: 0, bad: [], able: new Set() };
  const checks: Check[] = [
    {
      from: 'kubernetes',
      to: 'test pods',
      what: `${expected} pods with an address`,
      ok: pods.length === expected,
      error: `${pods.length} there are`,
    },
    ...(await timed('pod to pod, node, API server (ICMP, UDP, TCP)', () => podMatrix(layout, pods, mtu))),
    ...(await timed('node to pod', () => nodeMatrix(layout, pods, mtu))),
    ...(await timed('Services, NodePort, DNS, outside', () => serviceChecks(layout, pods))),
    ...(await timed('kubectl logs and exec', () => kubectlChecks(layout, pods))),
    ...(await timed(`streams of ${STREAM_MEBIBYTES} MiB`, () => streamChecks(layout, pods))),
    ...(await timed('conditions of sites, pools, peerings, nodes', async () =>
      conditionChecks((seen = await lookAtConditions(layout))),
    )),
  ];
  console.log(`\n${reachabilityTable(layout, pods, checks)}\n${LEGEND}\n`);
  await printResults(layout, checks, seen.able);
  const failures = checks.filter(({ ok }) => !ok);
  console.log(
    `${checks.length - failures.length} passed, ${failures.length} failed in ${((Date.now() - start) / 1000).toFixed(0)} s`,
  );
  return failures.length === 0;
};
