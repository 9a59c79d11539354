import { createServer, type ServerResponse } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net';
import type { Connection, EventRecorder, Node } from '@unbounded/kube';
import { openCluster } from '@unbounded/kube/open-cluster';
import { silentLogger } from '@unbounded/telemetry';
import { until } from '@unbounded/testing';
import { afterEach, describe, expect, test } from 'vitest';
import { startReconcileLoop } from './reconcile-loop.ts';
import { createClusterReporter } from '../world/cluster-reporter.ts';
import { createReportLoop, type ReportLoop } from './report-loop.ts';
import type { AgentReport, Reporter } from '../world/reporter.port.ts';

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
});

const report = (name = 'a', ...notes: string[]): AgentReport => ({
  awaiting: undefined,
  problems: [],
  annotations: { name },
  conditions: [],
  events: notes.map((note) => ({ type: 'Normal', reason: 'Moved', action: 'Move', note })),
  status: () => ({}),
});
const backoff = { baseMs: 5, maxMs: 20 };
const open = (reporter: Reporter, deadlineMs = 10_000): ReportLoop => {
  const loop = createReportLoop({ reporter, logger: silentLogger, deadlineMs, backoff });
  ends.push(() => loop.stop());
  return loop;
};

/** Reports with the real client to an API server at this port. */
const reporterTo = (port: number): Reporter => {
  const connection: Connection = {
    server: new URL(`http://127.0.0.1:${port}`),
    credentials: async () => ({ headers: {} }),
    close: () => undefined,
  };
  const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1' } } as unknown as Node;
  return createClusterReporter({
    cluster: openCluster({ connection }),
    nodeName: 'n1',
    node: () => node,
    events: { record: () => undefined } as unknown as EventRecorder,
  });
};

/** Takes connections and bytes, and never says anything. */
const blackHole = async (): Promise<{ readonly port: number; readonly taken: () => number }> => {
  const sockets: Socket[] = [];
  const server = createTcpServer((socket) => sockets.push(socket.on('error', () => undefined))).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  ends.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, taken: () => sockets.length };
};
const apiServer = async (answer: (response: ServerResponse) => void) => {
  let asked = 0;
  const server = createServer((request, response) => {
    asked++;
    request.resume();
    answer(response);
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  ends.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, taken: () => asked };
};

/** Passes as the agent's: each repairs, then reports. How many there were when the server had been asked. */
const passesBeside = async ({ port, taken }: Awaited<ReturnType<typeof apiServer>>): Promise<number> => {
  const reports = open(reporterTo(port));
  let passes = 0;
  const loop = startReconcileLoop({
    pass: async () => {
      passes++;
      reports.submit(report());
      return 1;
    },
    quietMs: 1,
    retryMs: 1,
    onError: (error) => {
      throw error;
    },
  });
  ends.push(() => loop.stop());
  await until('the report has begun', () => taken() > 0);
  const before = passes;
  await until('passes go on', () => passes >= before + 20);
  return taken();
};

describe('passes go on beside an API server that', () => {
  test('takes connections and never answers', async () => {
    expect(await passesBeside(await blackHole())).toBe(1); // and only one report is under way
  });

  test('takes 30 seconds', async () => {
    const slow = await apiServer((response) => {
      const timer = setTimeout(() => response.end('{}'), 30_000);
      response.once('close', () => clearTimeout(timer));
    });
    expect(await passesBeside(slow)).toBe(1);
  });

  test('is overloaded and asks to come back in 30 seconds', async () => {
    const busy = await apiServer((response) => response.writeHead(429, { 'retry-after': '30' }).end('{}'));
    expect(await passesBeside(busy)).toBe(1);
  });
});

test('a report to a server that swallows it is given up after its deadline, and repeated', async () => {
  const hole = await blackHole();
  open(reporterTo(hole.port), 50).submit(report());
  await until('it is tried again', () => hole.taken() >= 3);
  expect(hole.taken()).toBeGreaterThanOrEqual(3);
});

test('of reports that wait only the latest is sent, with the events of all', async () => {
  const sent: AgentReport[] = [];
  const first = Promise.withResolvers<void>();
  const loop = open({
    report: async (one) => {
      sent.push(one);
      if (sent.length === 1) await first.promise;
    },
  });
  loop.submit(report('a'));
  for (const name of ['b', 'c', 'd']) loop.submit(report(name, `moved ${name}`));
  first.resolve();
  await until('the second report', () => sent.length === 2);
  expect(sent[1]).toMatchObject({ annotations: { name: 'd' } });
  expect(sent[1]!.events.map(({ note }) => note)).toEqual(['moved b', 'moved c', 'moved d']);
});

test('a report that failed is repeated without a new one, and a newer one takes its place', async () => {
  const sent: string[] = [];
  const loop = open({
    report: async ({ annotations }) => {
      sent.push(annotations['name']!);
      if (sent.length < 3) throw new Error('refused');
    },
  });
  loop.submit(report('a'));
  await until('it has arrived', () => sent.length === 3);
  loop.submit(report('b'));
  await until('the next one', () => sent.length === 4);
  expect(sent).toEqual(['a', 'a', 'a', 'b']);
});

test('stopping gives up what is under way', async () => {
  const hole = await blackHole();
  const loop = open(reporterTo(hole.port));
  loop.submit(report());
  await until('it is under way', () => hole.taken() > 0);
  await loop.stop();
  loop.submit(report());
  expect(hole.taken()).toBe(1);
});
