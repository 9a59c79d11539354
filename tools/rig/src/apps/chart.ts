import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { chartFolder, helmProgram, NAMESPACE, namespaceFile, RELEASE } from '@unbounded/testing/chart';
import { APPS, imageFileOf, makeUnboundedImage, NEXT_VERSION, type Version, VERSION } from '@unbounded/oci/unbounded';
import { inNamespace, runAsync } from '../machine/command.ts';
import { kubeconfigFile, kubectl } from '../kubernetes/control-plane.ts';
import { API_SERVER_NAME, API_SERVER_PORT, type LabLayout, namespaceOf, servicesOf } from '../layout/layout.ts';
import { hasRedis, redisUrl } from './redis-place.ts';
import { caFile } from './tailnet-place.ts';
import { dnsFlags } from '../underlay/names.ts';
import { inNode } from '../node/node.ts';

/** Our own apps as pods: the image on every node, the chart installed by Helm. */

const READY_DEADLINE_MS = 180_000;
const NAME_LABEL = 'app.kubernetes.io/name';

/** Everything that the chart runs. */
export const POD_APPS = APPS;
export type PodApp = (typeof POD_APPS)[number];

const helm = (layout: LabLayout, args: readonly string[], input?: string): Promise<string> =>
  runAsync(
    [
      ...inNamespace(namespaceOf(layout.controlPlane.name)),
      helmProgram(),
      `--kubeconfig=${kubeconfigFile('admin')}`,
      `--namespace=${NAMESPACE}`,
      ...args,
    ],
    input === undefined ? {} : { input },
  );

/** Flags that the lab gives by the chart's values, to programs of earlier commits too: only ones that never had another name. */
export const flagsOfPods = (layout: LabLayout): Readonly<Partial<Record<PodApp, readonly string[]>>> => ({
  ...(layout.options.dataplane === 'ebpf' ? {} : { 'node-dataplane': [`--dataplane=${layout.options.dataplane}`] }),
  ...(dnsFlags(layout).length === 0 ? {} : { 'gateway-health': dnsFlags(layout) }),
});

const tailnetValues = (layout: LabLayout): object => ({
  'tailnet-registrar': { enabled: true },
  tailnet: { enabled: true, clusterCidrs: servicesOf(layout).map(({ cidr }) => cidr) },
});

/** What the lab's options turn on in the chart. */
export const valuesOfApps = (layout: LabLayout): object => {
  const { lan, tailnet } = layout.options;
  const flags = Object.entries(flagsOfPods(layout)).map(([app, extraArgs]) => [app, { extraArgs }] as const);
  const values = Object.fromEntries<object>(flags);
  const agent = { ...values['node-dataplane'], ...(lan ? { l2: 'On' } : {}), ...(tailnet ? { tailnet: true } : {}) };
  return {
    ...values,
    ...(lan ? { 'l2-networks': { enabled: true } } : {}),
    ...(tailnet ? tailnetValues(layout) : {}),
    ...(Object.keys(agent).length > 0 ? { 'node-dataplane': agent } : {}),
  };
};

const valuesOf = (layout: LabLayout, version: Version): object => ({
  global: {
    image: { tag: version, pullPolicy: 'Never' },
    apiServer: { host: API_SERVER_NAME, port: API_SERVER_PORT },
    ...(layout.options.tailnet ? { tailnet: { caBundle: readFileSync(caFile, 'utf8') } } : {}),
  },
  ...valuesOfApps(layout),
  ...(hasRedis(layout) ? { 'status-aggregator': { replicas: 2, redis: { url: redisUrl(layout) } } } : {}),
});

/** A chart, and the image that it runs. */
export interface Installation {
  readonly version: Version;
  readonly chartFolder: string;
  readonly imageFile: string;
}

/** What the checkout has. */
export const CURRENT: Installation = { version: VERSION, chartFolder, imageFile: imageFileOf(VERSION) };

export interface ChartOptions {
  /** Another chart than the checkout's. */
  readonly chart?: string;
  /** More values. */
  readonly values?: object;
  /** A program through which Helm sends the objects. */
  readonly postRenderer?: string;
}

/** Installs the chart, or upgrades what is installed to this version. Returns before the pods run. */
export const applyChart = async (
  layout: LabLayout,
  version: Version = VERSION,
  { chart = chartFolder, values = {}, postRenderer }: ChartOptions = {},
): Promise<void> => {
  await kubectl(layout, ['apply', '--server-side', '-f', namespaceFile]);
  const more = postRenderer === undefined ? [] : ['--post-renderer', postRenderer];
  await helm(
    layout,
    ['upgrade', '--install', RELEASE, chart, '--values', '-', ...more],
    JSON.stringify({ ...valuesOf(layout, version), ...values }),
  );
};

/** The agents take away what they made on every node, as docs/operations.md has it; pods lose their network. */
export const cleanUpByChart = async (layout: LabLayout): Promise<void> => {
  const values = { 'node-dataplane': { cleanup: true, maxUnavailable: '100%' }, 'node-keeper': { enabled: false } };
  await applyChart(layout, VERSION, { values });
  await kubectl(layout, ['rollout', 'status', 'daemonset/node-dataplane', '-n', NAMESPACE, '--timeout=90s']);
};

/** Takes all objects of the chart away, as a user does; what pods left in kernels stays. */
export const uninstallChart = (layout: LabLayout): Promise<string> =>
  helm(layout, ['uninstall', RELEASE, '--wait', '--timeout=120s']);

interface PodItem {
  readonly metadata: { readonly name: string; readonly uid: string; readonly deletionTimestamp?: string };
  readonly spec: { readonly nodeName?: string; readonly containers: readonly { readonly image: string }[] };
  readonly status: {
    readonly conditions?: readonly { readonly type: string; readonly status: string; readonly message?: string }[];
    readonly containerStatuses?: readonly {
      readonly state: { readonly waiting?: { readonly message?: string; readonly reason?: string } };
    }[];
  };
}

/** The pods of an app, on one node or on all. */
export const podsOf = async (layout: LabLayout, app: PodApp, node?: string): Promise<PodItem[]> => {
  const where = node === undefined ? [] : [`--field-selector=spec.nodeName=${node}`];
  const text = await kubectl(layout, [
    'get',
    'pods',
    '-n',
    NAMESPACE,
    '-l',
    `${NAME_LABEL}=${app}`,
    ...where,
    '-o',
    'json',
  ]);
  return (JSON.parse(text) as { items: PodItem[] }).items;
};

const isReady = ({ metadata, status }: PodItem): boolean =>
  metadata.deletionTimestamp === undefined &&
  status.conditions?.find(({ type }) => type === 'Ready')?.status === 'True';

/** Why a pod is not ready, as far as its node says. */
const complaint = ({ metadata, status }: PodItem): string => {
  const waiting = status.containerStatuses?.map(({ state }) => state.waiting).find((state) => state !== undefined);
  const condition = status.conditions?.find((entry) => entry.status === 'False' && entry.message);
  return `${metadata.name}: ${waiting?.message ?? waiting?.reason ?? condition?.message ?? 'not ready'}`;
};

const outputs = async (layout: LabLayout, commands: readonly (readonly string[])[]): Promise<string> =>
  (await Promise.allSettled(commands.map((argv) => kubectl(layout, argv))))
    .map((result) => (result.status === 'fulfilled' ? result.value.trim() : String(result.reason)))
    .join('\n');

/** What was noted of a pod, and what it logged last: a pod that runs and is not ready says why nowhere else. */
const historyOf = (layout: LabLayout, pod: string): Promise<string> =>
  outputs(layout, [
    ['get', 'events', '-n', NAMESPACE, `--field-selector=involvedObject.name=${pod}`, '-o=custom-columns=:.message'],
    ['logs', pod, '-n', NAMESPACE, '--tail=10'],
  ]);

/** On what they depend: a pod of the pod network needs the agents of the nodes between it and the API server. */
const surroundings = (layout: LabLayout): Promise<string> =>
  outputs(layout, [
    ['get', 'nodes'],
    ['get', 'pods', '-A', '-o', 'wide'],
  ]);

export interface Wanted {
  readonly app: PodApp;
  readonly count: number;
  /** Only these nodes. */
  readonly node?: string;
  /** Only pods of this version count. */
  readonly version?: Version;
}

/** Waits until exactly so many pods of an app are there and ready. @throws Error with what the others wait for */
export const waitForPodsOf = async (layout: LabLayout, { app, count, node, version }: Wanted): Promise<void> => {
  for (const end = Date.now() + READY_DEADLINE_MS; ; await delay(250)) {
    const pods = await podsOf(layout, app, node);
    const done = pods.filter(
      (pod) => isReady(pod) && (version === undefined || pod.spec.containers[0]!.image.endsWith(`:${version}`)),
    );
    if (done.length === count && pods.length === count) return;
    if (Date.now() < end) continue;
    const waiting = await Promise.all(
      pods
        .filter((pod) => !done.includes(pod))
        .map(async (pod) => `${complaint(pod)}\n${await historyOf(layout, pod.metadata.name)}`),
    );
    waiting.push(await surroundings(layout));
    throw new Error(
      `${done.length} of ${count} pods of ${app} are ready after ${READY_DEADLINE_MS / 1000} s\n${waiting.join('\n')}`,
    );
  }
};

const countOf = (layout: LabLayout, app: PodApp): number => {
  if (app === 'node-dataplane' || app === 'node-keeper') return layout.nodes.length;
  const isSingle = app === 'status-aggregator' && !hasRedis(layout);
  return isSingle ? 1 : Math.min(2, layout.nodes.length);
};

/** What of our apps is installed: the chart of a former version has not all of them. */
const installedApps = async (layout: LabLayout): Promise<readonly PodApp[]> => {
  const names = ['-o', 'jsonpath={.items[*].metadata.name}'];
  const found = await kubectl(layout, ['get', 'deployments,daemonsets', '-n', NAMESPACE, ...names]);
  return POD_APPS.filter((app) => found.split(' ').includes(app));
};

/** Waits for everything that the chart runs. node-keeper keeps its version until its pods are deleted. */
export const waitForChart = async (layout: LabLayout, version: Version = VERSION): Promise<void> => {
  for (const app of await installedApps(layout))
    await waitForPodsOf(layout, { app, count: countOf(layout, app), ...(app === 'node-keeper' ? {} : { version }) });
};

/** Deletes an app's pods, on one node or on all, and waits for their successors. */
export const restartPods = async (layout: LabLayout, app: PodApp, node?: string): Promise<void> => {
  const count = (await podsOf(layout, app, node)).length;
  const where = node === undefined ? [] : [`--field-selector=spec.nodeName=${node}`];
  await kubectl(layout, ['delete', 'pods', '-n', NAMESPACE, '-l', `${NAME_LABEL}=${app}`, ...where, '--wait=true']);
  // A Deployment's successor may come up on another node.
  const isDaemon = app === 'node-dataplane' || app === 'node-keeper';
  await waitForPodsOf(
    layout,
    isDaemon && node !== undefined ? { app, count, node } : { app, count: countOf(layout, app) },
  );
};

/** Puts an image on every node. */
export const importImage = async ({ nodes }: LabLayout, file: string): Promise<void> => {
  for (const { name } of nodes) await runAsync([...inNode(name), 'ctr', '-n', 'k8s.io', 'images', 'import', file]);
};

/** To the stand-in for the next version: its image on every node, then the chart, node by node. */
export const upgradePods = async (layout: LabLayout): Promise<void> => {
  await importImage(layout, await makeUnboundedImage(NEXT_VERSION));
  await applyChart(layout, NEXT_VERSION);
  await waitForChart(layout, NEXT_VERSION);
};

/** Back to what was installed before the upgrade, or with a revision of it. */
export const rollbackPods = async (
  layout: LabLayout,
  { version = VERSION, revision }: { readonly version?: Version; readonly revision?: number } = {},
): Promise<void> => {
  await helm(layout, ['rollback', RELEASE, ...(revision === undefined ? [] : [String(revision)])]);
  await waitForChart(layout, version);
};

/** What the pods of an app said, the names of the pods before the lines. */
export const podLogs = async (layout: LabLayout, app: PodApp, node?: string): Promise<string> => {
  const pods = await podsOf(layout, app, node);
  const texts = pods.map(({ metadata }) => kubectl(layout, ['logs', '-n', NAMESPACE, metadata.name, '--prefix=true']));
  return (await Promise.all(texts)).join('');
};
