import { setTimeout as delay } from 'node:timers/promises';
import { NODE_APPS } from '../apps/agents.ts';
import { kubectl, startApiServer, stopApiServer } from '../kubernetes/control-plane.ts';
import { pidOf } from '../machine/daemon.ts';
import type { LabLayout } from '../layout/layout.ts';
import { killAgent, timeUntil } from './scenario.ts';
import { type CONTROLLERS, controllersOf, NAMESPACE } from '../apps/tokens.ts';
import { agentReady } from '../apps/agent-state.ts';
import { startController } from '../apps/controllers.ts';

/** Our processes and the API server end, and come back. */

type Controller = (typeof CONTROLLERS)[number];
const REPLICAS = [1, 2] as const;

const killReplica = async (layout: LabLayout, app: Controller, replica: number): Promise<void> => {
  const name = `${app}-${replica}`;
  const pid = pidOf(name);
  if (pid === undefined) throw new Error(`${name} does not run`);
  process.kill(pid, 'SIGKILL');
  await timeUntil(`${name} has ended`, () => pidOf(name) === undefined, 5000);
  await startController(layout, app, replica);
};

/** A Lease of a leader that was killed runs out in 15 s. */
const FOLLOWED_MS = 30_000;

/** Of the replicas of a controller the one that leads: the holder of its Lease begins with the host's name and the pid. */
const leaderOf = async (layout: LabLayout, app: Controller): Promise<number | undefined> => {
  const holder = await kubectl(layout, ['get', 'lease', '-n', NAMESPACE, app, '-o', 'jsonpath={.spec.holderIdentity}']);
  return REPLICAS.find((replica) => holder.includes(`_${pidOf(`${app}-${replica}`)}_`));
};

/** Kills the leading replica of each controller, and waits until another one leads. */
export const killLeaders = async (layout: LabLayout): Promise<void> => {
  for (const app of controllersOf(layout)) {
    const leader = await leaderOf(layout, app);
    if (leader === undefined) throw new Error(`no replica of ${app} leads`);
    await killReplica(layout, app, leader);
  }
  for (const app of controllersOf(layout))
    await timeUntil(`a replica of ${app} leads`, async () => (await leaderOf(layout, app)) !== undefined, FOLLOWED_MS);
};

/** The API server is away for a while; meanwhile something else may happen. */
export const withoutApiServer = async (layout: LabLayout, act: () => Promise<void>): Promise<void> => {
  await stopApiServer();
  try {
    await act();
  } finally {
    await startApiServer(layout);
  }
};

const READY_MS = 20_000;
/** For a keeper's tunnels to shake hands anew before the next is killed: two ends at once would be another test. */
const BETWEEN_MS = 1500;

/** Kills and starts every process of ours, and the API server, one after the other. */
export const restartEverything = async (layout: LabLayout): Promise<void> => {
  for (const app of controllersOf(layout)) for (const replica of REPLICAS) await killReplica(layout, app, replica);
  for (const { name } of layout.nodes) {
    for (const app of NODE_APPS) {
      await killAgent(layout, name, app);
      await timeUntil(`the agent of ${name} is ready`, () => agentReady(name), READY_MS);
      if (app === 'node-keeper') await delay(BETWEEN_MS);
    }
  }
  await withoutApiServer(layout, () => delay(1000));
};
