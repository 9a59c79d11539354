import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { nodeAppsOf, startAgentsFrom } from '../../apps/agents.ts';
import { objectSource } from './object-source.ts';
import { FEATURES } from '../../features/features.ts';
import { applyManifests, kubectl, prepareControlPlane, startControlPlane } from '../../kubernetes/control-plane.ts';
import { makeUnboundedImage } from '@unbounded/oci/unbounded';
import { applyChart, CURRENT, type Installation, waitForChart } from '../../apps/chart.ts';
import { yamlOf } from '@unbounded/testing/chart';
import { makeUnderlay } from '../../underlay/underlay.ts';
import { makeImageStore } from './image-store.ts';
import { makeImages } from './images.ts';
import { type LabLayout, namespaceOf } from '../../layout/layout.ts';
import { crds, dns, probes, rbac } from './manifests.ts';
import { isRunning, makeMountPoints } from '../../node/node.ts';
import { markReady, startClusterNode } from './node.ts';
import { checkInstances } from '../../machine/inotify.ts';
import { checkout, nodeJs, state } from '../../machine/paths.ts';
import { startNameServer } from '../../underlay/names.ts';
import { saveLayout, startWorld, step } from '../steps.ts';
import { agentReady, peerStates } from '../../apps/agent-state.ts';
import { siteObjects } from '../site-objects.ts';
import { startAggregator } from '../../apps/aggregator.ts';
import { startControllers } from '../../apps/controllers.ts';
import { inNamespace } from '../../machine/command.ts';
import { pidOf, startDaemon } from '../../machine/daemon.ts';

const READY_DEADLINE_MS = 180_000;

interface NodeStatus {
  metadata: { name: string };
  status: { conditions?: { type: string; status: string; message?: string }[] };
}

/** What keeps nodes from being Ready, a line each; empty when all are. */
const notReady = async (layout: LabLayout): Promise<string[]> => {
  const { items } = JSON.parse(await kubectl(layout, ['get', 'nodes', '-o', 'json'])) as { items: NodeStatus[] };
  return layout.nodes.flatMap(({ name }) => {
    const node = items.find((item) => item.metadata.name === name);
    const ready = node?.status.conditions?.find((condition) => condition.type === 'Ready');
    return ready?.status === 'True' ? [] : [`${name}: ${ready?.message ?? 'not registered'}`];
  });
};

const waitForNodes = async (layout: LabLayout): Promise<void> => {
  for (const end = Date.now() + READY_DEADLINE_MS; ; await delay(500)) {
    const waiting = await notReady(layout);
    if (waiting.length === 0) return;
    if (Date.now() > end) throw new Error(`not Ready after ${READY_DEADLINE_MS / 1000} s:\n${waiting.join('\n')}`);
  }
};

const waitForPods = async (layout: LabLayout): Promise<void> => {
  for (const workload of ['daemonset/probe-a', 'daemonset/probe-b', '-n=kube-system deployment/coredns']) {
    const [first, second] = workload.split(' ');
    await kubectl(layout, ['rollout', 'status', ...(second ? [first!, second] : [first!]), '--timeout=120s']);
  }
};

const PROVEN_DEADLINE_MS = 60_000;

/** Peers of a node that have not answered its probes, by state; its agent may not answer either. */
const unproven = (node: string): string => {
  if (!agentReady(node)) return 'its agent is not ready';
  const { Healthy: _, ...others } = peerStates(node);
  return Object.entries(others)
    .flatMap(([peerState, count]) => (count > 0 ? [`${count} ${peerState}`] : []))
    .join(', ');
};

/** A node is Ready when one way leads on: a WireGuard handshake that was lost is made again only after five seconds. */
const waitForLinks = async ({ nodes }: LabLayout): Promise<void> => {
  for (const end = Date.now() + PROVEN_DEADLINE_MS; ; await delay(250)) {
    const waiting = nodes.flatMap(({ name }) => unproven(name).replace(/^(?=.)/, `${name}: `) || []);
    if (waiting.length === 0) return;
    if (Date.now() > end)
      throw new Error(`links that nothing has come over after ${PROVEN_DEADLINE_MS / 1000} s:\n${waiting.join('\n')}`);
  }
};

/** Plays cloud provider and token renewal for as long as the lab runs. */
const startAttendant = (layout: LabLayout): void => {
  if (pidOf('attendant') !== undefined) return;
  const file = join(state, 'layout.json');
  writeFileSync(file, JSON.stringify(layout));
  startDaemon('attendant', [
    ...inNamespace(namespaceOf(layout.controlPlane.name)),
    nodeJs,
    join(checkout, 'tools/rig/src/substrate/cluster/attendant.ts'),
    file,
  ]);
};

/** In a lab of pods something else than the checkout may be installed. */
export const up = async (
  layout: LabLayout,
  { version, chartFolder, imageFile }: Installation = CURRENT,
): Promise<void> => {
  if (!isRunning(layout.controlPlane.name)) checkInstances(layout.nodes.length);
  saveLayout(layout);
  writeFileSync(join(state, 'resolv.conf'), 'nameserver 127.0.0.1\n'); // pods with dnsPolicy Default; there is no DNS outside
  const asPods = layout.options.agents === 'pods';
  await step('images', async () => {
    await makeImages();
    if (asPods) await makeUnboundedImage();
  });
  const stored = makeImageStore(layout, asPods ? [imageFile] : []);
  stored.catch(() => undefined); // it is waited for below, beside what goes on meanwhile
  await step('underlay: LANs, routers, WAN', () => makeUnderlay(layout));
  await step('certificates', () => prepareControlPlane(layout));
  startWorld();
  startNameServer(layout);
  for (const feature of FEATURES) feature.start(layout);
  makeMountPoints();
  const startNodes = async (): Promise<void> => {
    await stored;
    for (const node of layout.nodes) startClusterNode(layout, node);
  };
  if (!asPods) await startNodes();
  await step('etcd, API server', () => startControlPlane(layout));
  markReady();
  if (asPods) await step('our chart', () => applyChart(layout, version, { chart: chartFolder }));
  else await step('CRDs, RBAC', () => applyManifests(layout, [crds(), rbac(layout)].join('\n---\n')));
  startAttendant(layout);
  if (!asPods) {
    await step('controllers', () => startControllers(layout));
    await step('status aggregator', () => startAggregator(layout));
  }
  await step('sites, gateway pools, DNS, test pods', async () => {
    await kubectl(layout, ['wait', '--for=condition=Established', 'crd', '--all', '--timeout=30s']);
    await applyManifests(layout, [yamlOf(siteObjects(layout)), dns(layout), probes(layout)].join('---\n'));
  });
  // All pods of the chart start at once then: beside that the objects took half a minute, and sometimes kubectl lost its connection.
  if (asPods) await startNodes();
  await step('agents', () =>
    asPods ? waitForChart(layout, version) : startAgentsFrom(objectSource, layout, nodeAppsOf(layout)),
  );
  await step('every node Ready', () => waitForNodes(layout));
  await step('test pods ready', () => waitForPods(layout));
  await step('every link proven', () => waitForLinks(layout));
};
