import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

import { type ApiServer, type AppProcess, appEntry, startApp, until } from '@unbounded/testing';

import { egressClients, ownerIn, SHOP } from './egress-cluster.testdata.ts';

const node = fileURLToPath(new URL('../../../tools/node', import.meta.url));

/** The program against a real API server, and what is to be seen of it there. */
export const createTestController = (api: ApiServer) => {
  const clients = egressClients(api);
  const apps: AppProcess[] = [];
  const rule = (name = 'partner') => clients.rules.get(name, { namespace: SHOP });
  const condition = async (type: string, name?: string) =>
    (await rule(name)).status?.conditions?.find((entry) => entry.type === type);
  return {
    clients,
    rule,
    condition,
    /**
     * With all rights; access.kube.spec.ts says what it does with its own. Simulated agents share a process, and a
     * shorter timeout takes one for silent when the machine is busy.
     */
    start: (...args: string[]): AppProcess => {
      const app = startApp('static-egress', ['--kubeconfig', api.kubeconfig, '--agent-timeout', '8s', ...args]);
      apps.push(app);
      return app;
    },
    killAll: async (): Promise<void> => {
      for (const app of apps.splice(0)) await app.stop('SIGKILL');
    },
    ready: (name?: string) =>
      until(`${name ?? 'the rule'} is ready`, async () => (await condition('Ready', name))?.status === 'True'),
    /** All agents count, and every rule is ready with them: addresses are where they stay. */
    settled: async (app: AppProcess, agents = 3, timeoutMs?: number): Promise<void> => {
      const prefix = 'unbounded_net_controller_egress';
      const isPlanned = async (): Promise<boolean> => {
        const { body } = await app.health('/metrics');
        return body.includes(`${prefix}_live_agents ${agents}\n`) && !body.includes(`${prefix}_rules{ready="false"}`);
      };
      const isSaid = async (): Promise<boolean> =>
        (await clients.rules.listAll()).every(({ status }) =>
          status?.conditions?.some((entry) => entry.type === 'Ready' && entry.status === 'True'),
        );
      await until('all is settled', isPlanned, timeoutMs);
      await until('the rules say so', isSaid, timeoutMs);
    },
    owner: async (address: string) => ownerIn(await clients.slices.listAll(), address),
    /** What only this program writes: specs of slices, statuses of rules and pools. */
    written: async () => {
      const slices = await clients.slices.listAll();
      const [rules, pools] = [await clients.rules.listAll(), await clients.pools.listAll()];
      return {
        slices: slices.map(({ metadata, spec }) => ({ name: metadata.name, generation: metadata.generation, spec })),
        statuses: [...rules, ...pools].map(({ metadata }) => [metadata.name, metadata.resourceVersion]),
      };
    },
    explain: (pod: string, destination: string): string =>
      execFileSync(node, [appEntry('static-egress'), 'explain', pod, destination, '--kubeconfig', api.kubeconfig], {
        encoding: 'utf8',
      }),
  };
};

const countOf = async (app: AppProcess, metric: string): Promise<number> => {
  const { body } = await app.health('/metrics');
  return Number(new RegExp(`^unbounded_net_controller_egress_${metric} (\\d+)`, 'm').exec(body)?.[1] ?? 0);
};

/** Slices that a replica has written. */
export const sliceWritesOf = (app: AppProcess): Promise<number> => countOf(app, 'slice_writes_total');

/** Plans that it has made. */
export const plansOf = (app: AppProcess): Promise<number> => countOf(app, 'plan_duration_seconds_count');

export const leads = (app: AppProcess): boolean => {
  const last = app.log.findLast(({ msg }) => msg === 'became leader' || msg === 'no longer leader');
  return last?.['msg'] === 'became leader';
};
