import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { annotations } from '@unbounded/crds';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { stopAgent } from '../agents.ts';
import { kubectl } from '../control-plane.ts';
import { down } from '../down.ts';
import { layoutOf } from '../layout.ts';
import { allHealthy } from '../outages.ts';
import { parsePcap } from '../pcap.ts';
import { type Pod, probePods } from '../probes.ts';
import { captureInPod, podOn, startFlow } from '../scenario.ts';
import { up } from '../up.ts';
import { type Attempt, table, type Tried, tryAll } from './attempts.ts';
import { agentOf, kubeletOf } from './identity.ts';
import { annotationAttempts, objectAttempts, kubeletAttempts, type Targets } from './node-objects.attempts.ts';
import { MARK_PORT, packetAttempts } from './node-packets.attempts.ts';
import { podAttempts } from './pod.attempts.ts';

/** A node and a pod do their worst: flows between the others lose nothing, and nothing forged arrives. */

const layout = layoutOf({ sites: 3, workers: 2, ip: 'dual' });
const nodeNamed = (name: string) => layout.nodes.find((node) => node.name === name)!;
const work = mkdtempSync(join(tmpdir(), 'unbounded-lab-'));

beforeAll(async () => {
  await down();
  await up(layout);
  await allHealthy(layout, 60_000);
}, 400_000);
afterAll(async () => {
  await down();
  rmSync(work, { recursive: true, force: true });
}, 60_000);

/** Inside a site, and between all sites; none of them has an end on the hostile node. */
const FLOWS = [
  ['s1-w2', 's1-cp'],
  ['s1-w2', 's2-w1'],
  ['s2-w2', 's3-w1'],
  ['s3-w2', 's1-w2'],
] as const;

interface Outcome {
  readonly tried: readonly Tried[];
  readonly lost: readonly string[];
  readonly arrived: readonly string[];
}

const whileFlowing = async (attempts: readonly Attempt[], victims: readonly Pod[]): Promise<Outcome> => {
  const files = victims.map((pod) => [pod, join(work, `${pod.name}.pcap`)] as const);
  const captures = await Promise.all(files.map(([pod, file]) => captureInPod(pod, file)));
  const flows = await Promise.all(
    FLOWS.map(async ([from, to]) => ({
      name: `${from} - ${to}`,
      flow: await startFlow(await podOn(layout, from), await podOn(layout, to)),
    })),
  );
  const tried = await tryAll(attempts);
  const reports = await Promise.all(flows.map(async ({ name, flow }) => ({ name, ...(await flow.end()) })));
  for (const stop of captures) await stop();
  return {
    tried,
    lost: reports
      .filter(({ lost }) => lost > 0)
      .map(({ name, lost, sent, losses }) => `${name}: ${lost} of ${sent}, ${JSON.stringify(losses)}`),
    arrived: files.flatMap(([pod, file]) =>
      parsePcap(readFileSync(file))
        .filter(({ destinationPort }) => destinationPort === MARK_PORT)
        .map(({ source }) => `${pod.name} received "forged" from ${source}`),
    ),
  };
};

const IN_VAIN = { succeeded: [], lost: [], arrived: [] };

/** What the attacker came to. */
const judged = ({ tried, lost, arrived }: Outcome) => {
  console.log(table(tried));
  const succeeded = tried
    .filter(({ failure }) => failure !== undefined)
    .map(({ name, failure }) => `${name}: ${failure}`);
  return { succeeded, lost, arrived };
};

const publishedKeys = async (): Promise<ReadonlyMap<string, string>> => {
  const { items } = JSON.parse(await kubectl(layout, ['get', 'nodes', '-o', 'json'])) as {
    items: { metadata: { name: string; annotations: Record<string, string> } }[];
  };
  return new Map(items.map(({ metadata }) => [metadata.name, metadata.annotations[annotations.wireGuardPublicKey]!]));
};

test('root on a worker harms no flow between others', { timeout: 900_000 }, async () => {
  const hostile = nodeNamed('s1-w1');
  const targets: Targets = {
    layout,
    hostile,
    neighbour: nodeNamed('s1-w2'),
    gateway: nodeNamed('s1-g1'),
    farGateway: nodeNamed('s2-g1'),
    farWorker: nodeNamed('s2-w1'),
    keys: await publishedKeys(),
    agent: agentOf(layout, hostile),
    kubelet: kubeletOf(layout, hostile),
  };
  await stopAgent(hostile.name, 'node-dataplane', 'SIGKILL'); // it would correct what is written in its name
  const [victim, farVictim, bystander] = [
    await podOn(layout, 's1-w2'),
    await podOn(layout, 's2-w1'),
    await podOn(layout, 's3-w1'),
  ];
  const attempts = [
    ...annotationAttempts(targets),
    ...objectAttempts(targets),
    ...kubeletAttempts(targets),
    ...packetAttempts({ ...targets, victim, farVictim, bystander }),
  ];
  expect(attempts.length).toBeGreaterThanOrEqual(40);
  expect(judged(await whileFlowing(attempts, [victim, farVictim]))).toEqual(IN_VAIN);
});

test('a pod harms no flow between others', { timeout: 600_000 }, async () => {
  const home = nodeNamed('s2-w1');
  const [attacker, beside] = (await probePods(layout)).filter(({ node }) => node === home.name);
  const [victim, farVictim] = [await podOn(layout, 's2-w2'), await podOn(layout, 's1-w2')];
  const attempts = podAttempts({
    attacker: attacker!,
    beside: beside!,
    home,
    neighbour: nodeNamed('s2-w2'),
    gateway: nodeNamed('s2-g1'),
    farWorker: nodeNamed('s1-w2'),
    farGateway: nodeNamed('s1-g1'),
    victim,
    farVictim,
  });
  expect(attempts.length).toBeGreaterThanOrEqual(25);
  expect(judged(await whileFlowing(attempts, [beside!, victim, farVictim]))).toEqual(IN_VAIN);
});
