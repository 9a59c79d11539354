import { Agent, request } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import type { NodeReport } from '@unbounded/status';
import type { ApiServer } from '@unbounded/testing';
import { NAMESPACE } from '@unbounded/testing/chart';
import { AT_ONCE, someAtOnce } from './some-at-once.testdata.ts';

/** Agents of nodes, as far as an aggregator sees of them. */
export interface ReplayedNodes {
  /** Pushes what a node reports from now on. */
  report(node: string, report: NodeReport): Promise<void>;
  /** The longest time in which all of them had reported once more, in ms. */
  readonly slowestTurnMs: number;
  stop(): Promise<void>;
}

const AUDIENCE = 'status-aggregator.net.unbounded-cloud.io';
/** Agents push every 10 s. A report counts for 25 s: in this time all have reported again, by a delta without content. */
const TURN_MS = 16_000;
const PUSHED_AT_ONCE = 4;

export const tokenOf = async (api: ApiServer, account: string, spec: object): Promise<string> => {
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec };
  const path = `/api/v1/namespaces/${account}/token`;
  const answer = await api.cluster.transport.send({ method: 'POST', path, body });
  return (answer as { readonly status: { readonly token: string } }).status.token;
};

const agentToken = (api: ApiServer, node: string): Promise<string> =>
  tokenOf(api, `${NAMESPACE}/serviceaccounts/node-dataplane`, {
    audiences: [AUDIENCE],
    boundObjectRef: { apiVersion: 'v1', kind: 'Node', name: node },
  });

const createPost = (port: number) => {
  const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE });
  const to = { host: '127.0.0.1', port, path: '/v1alpha1/reports', method: 'POST', rejectUnauthorized: false, agent };
  const fixed = { 'content-encoding': 'gzip', 'content-type': 'application/json' };
  const post = (token: string, body: object): Promise<number> =>
    new Promise((resolve, reject) => {
      const headers = { ...fixed, authorization: `Bearer ${token}` };
      request({ ...to, headers }, (response) => {
        response.resume().on('end', () => resolve(response.statusCode ?? 0));
      })
        .on('error', reject)
        .end(gzipSync(JSON.stringify(body)));
    });
  return { post, close: () => agent.destroy() };
};

/** Has all of them report, and again and again; with their own tokens. */
export const startNodes = async (
  api: ApiServer,
  port: number,
  reports: ReadonlyMap<string, NodeReport>,
): Promise<ReplayedNodes> => {
  const { post, close } = createPost(port);
  const tokens = new Map<string, string>();
  const current = new Map(reports);
  const revisions = new Map<string, number>();
  const busy = new Map<string, Promise<void>>();
  const push = async (node: string, content: object): Promise<void> => {
    const revision = (revisions.get(node) ?? 0) + 1;
    const status = await post(tokens.get(node)!, { epoch: 'replayed', revision, ...content });
    if (status !== 204) throw new Error(`the report of ${node} is answered ${status}`);
    revisions.set(node, revision);
  };
  /** One report of a node at a time: as an agent, and because the aggregator takes no two. */
  const inTurn = (node: string, content: () => object): Promise<void> => {
    const next = (busy.get(node) ?? Promise.resolve()).catch(() => undefined).then(() => push(node, content()));
    busy.set(node, next);
    return next;
  };
  const report = (node: string, whole: NodeReport): Promise<void> => {
    current.set(node, whole);
    return inTurn(node, () => ({ report: whole }));
  };
  const again = (node: string): Promise<void> =>
    inTurn(node, () => ({ base: revisions.get(node), patch: {} })).catch(() => report(node, current.get(node)!));
  await someAtOnce(current, AT_ONCE, async ([node, whole]) => {
    tokens.set(node, await agentToken(api, node));
    await report(node, whole);
  });

  const stopped = new AbortController();
  let slowestTurnMs = 0;
  const turn = async (): Promise<void> => {
    const began = performance.now();
    let at = 0;
    await someAtOnce(current.keys(), PUSHED_AT_ONCE, async (node) => {
      const dueMs = (TURN_MS * at++) / current.size - (performance.now() - began);
      if (dueMs > 0) await sleep(dueMs, undefined, { signal: stopped.signal });
      stopped.signal.throwIfAborted();
      await again(node);
    });
    slowestTurnMs = Math.max(slowestTurnMs, performance.now() - began);
  };
  const run = async (): Promise<void> => {
    while (!stopped.signal.aborted) await turn().catch(() => sleep(1000));
  };
  const running = run();
  return {
    report,
    get slowestTurnMs() {
      return slowestTurnMs;
    },
    async stop() {
      stopped.abort();
      await running;
      close();
    },
  };
};
