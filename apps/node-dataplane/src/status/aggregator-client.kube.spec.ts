import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { get } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Cluster, endpointSlices } from '@unbounded/kube';
import type { Forwarding, Push } from '@unbounded/status';
import { type ApiServer, type AppProcess, borrowApiServer, resetCluster, startApp, until } from '@unbounded/testing';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { type AggregatorClient, createAggregatorClient } from './aggregator-client.ts';
import { NoAggregatorError } from './push.port.ts';

/** The agent's client, the aggregator as a process, and a real API server between them. */

const NAMESPACE = 'unbounded-system';
const SERVICE = 'status-aggregator';
const AUDIENCE = 'status-aggregator.net.unbounded-cloud.io';

let kube: ApiServer;
const folder = mkdtempSync(join(tmpdir(), 'status-client-'));
const tokenFile = join(folder, 'token');
const opened: (Disposable | AsyncDisposable)[] = [];

const tokenFor = async (audience: string): Promise<string> => {
  const answer = await kube.cluster.transport.send({
    method: 'POST',
    path: `/api/v1/namespaces/${NAMESPACE}/serviceaccounts/node-dataplane/token`,
    body: {
      ...{ apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest' },
      spec: { audiences: [audience], boundObjectRef: { apiVersion: 'v1', kind: 'Node', name: 'n1' } },
    },
  });
  return (answer as { readonly status: { readonly token: string } }).status.token;
};

beforeAll(async () => {
  kube = await borrowApiServer();
  await resetCluster(kube.cluster);
  kube.kubectl('create', 'serviceaccount', 'node-dataplane', '-n', NAMESPACE);
  kube.apply(JSON.stringify({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1' } }));
});
afterEach(async () => {
  for (const one of opened.splice(0))
    if (Symbol.asyncDispose in one) await one[Symbol.asyncDispose]();
    else one[Symbol.dispose]();
});
afterAll(async () => {
  rmSync(folder, { recursive: true });
  await kube.stop();
});

interface Aggregator {
  readonly process: AppProcess;
  readonly port: number;
}

const startAggregator = async (): Promise<Aggregator> => {
  const process = startApp(SERVICE, ['--kubeconfig', kube.kubeconfig, '--namespace', NAMESPACE, '--port', '0']);
  opened.push(process);
  const port = await until(
    'the API is served',
    () => process.log.find(({ msg }) => msg === 'serving the API')?.['port'],
  );
  await until('ready', async () => (await process.health('/readyz')).status === 200);
  return { process, port: port as number };
};

/** Slices as they are for pods: the API server takes none of loopback addresses. @param port undefined: there is no Service */
const clientOf = (port: () => number | undefined, onWants?: (words: readonly string[]) => void): AggregatorClient => {
  const listAll = async () => {
    const at = port();
    return at === undefined
      ? []
      : [
          // As the controller of slices leaves one of a Service without pods.
          { endpoints: null, ports: null },
          { endpoints: [{ addresses: ['127.0.0.1'] }], ports: [{ name: 'https', port: at }] },
        ];
  };
  const cluster = {
    client: (resource: unknown) =>
      resource === endpointSlices ? { listAll } : kube.cluster.client(resource as typeof endpointSlices),
  } as unknown as Cluster;
  const client = createAggregatorClient(cluster, { namespace: NAMESPACE, service: SERVICE, tokenFile }, onWants);
  opened.push(client);
  return client;
};

const whole = (revision = 1): Push => ({
  ...{ epoch: 'e1', revision },
  report: { agentVersion: '0.1.0', isComplete: true, problems: [], drops: {} },
});
const delta = (revision: number): Push => ({
  epoch: 'e1',
  revision,
  base: revision - 1,
  patch: { drops: { spoofed: 1 } },
});
const signal = (): AbortSignal => AbortSignal.timeout(10_000);

test('a report arrives over TLS, a delta follows it, and a restarted aggregator asks for the whole one', async () => {
  writeFileSync(tokenFile, await tokenFor(AUDIENCE));
  let aggregator = await startAggregator();
  const client = clientOf(() => aggregator.port);
  expect(await client.send(whole(), signal())).toBe('accepted');
  expect(await client.send(delta(2), signal())).toBe('accepted');
  await aggregator.process.stop();
  await expect(client.send(delta(3), signal())).rejects.toThrow(/ECONNREFUSED|socket hang up|ECONNRESET/);
  aggregator = await startAggregator();
  expect(await client.send(delta(3), signal())).toBe('resync');
  expect(await client.send(whole(4), signal())).toBe('accepted');
});

/** What a person with a token of the API server's administrator is answered. */
const ask = (port: number, path: string, token: string): Promise<{ status: number; json: unknown }> => {
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; json: unknown }>();
  const headers = { authorization: `Bearer ${token}` };
  get({ host: '127.0.0.1', port, path, headers, rejectUnauthorized: false, agent: false }, (response) => {
    let body = '';
    response.on('data', (chunk: Buffer) => (body += chunk.toString()));
    response.on('end', () => resolve({ status: response.statusCode ?? 0, json: JSON.parse(body) }));
  }).on('error', reject);
  return promise;
};

test('a viewer who wants to know what a node forwards by makes the agent hear of it, and has its answer', async () => {
  kube.kubectl('create', 'serviceaccount', 'viewer', '-n', NAMESPACE);
  const binding = ['--clusterrole=cluster-admin', `--serviceaccount=${NAMESPACE}:viewer`];
  kube.kubectl('create', 'clusterrolebinding', 'viewer', ...binding);
  const viewer = await kube.serviceAccountToken(NAMESPACE, 'viewer');
  writeFileSync(tokenFile, await tokenFor(AUDIENCE));
  const { port } = await startAggregator();
  const heard: string[] = [];
  const client = clientOf(
    () => port,
    (words) => heard.push(...words),
  );
  expect(await client.send(whole(), signal())).toBe('accepted');
  expect(heard).toEqual([]);
  const path = '/v1alpha1/nodes/n1/forwarding';
  expect(await ask(port, path, viewer)).toMatchObject({ status: 202, json: { reason: 'Requested' } });
  expect(await client.send(delta(2), signal())).toBe('accepted');
  expect(heard).toEqual(['forwarding']);
  const forwarding: Forwarding = { readTime: 't', dataplane: 'ebpf', total: 0, different: 0, entries: [] };
  await client.sendForwarding(forwarding, signal());
  expect(await ask(port, path, viewer)).toMatchObject({ status: 200, json: { forwarding } });
});

test('a token for somebody else is refused, and stands in no error', async () => {
  const { port } = await startAggregator();
  const token = await tokenFor('https://kubernetes.default.svc.cluster.local');
  writeFileSync(tokenFile, token);
  const refused = clientOf(() => port).send(whole(), signal());
  await expect(refused).rejects.toThrow(/^the aggregator answers 401: /);
  await expect(refused).rejects.not.toThrow(token.slice(0, 40));
});

test('an aggregator of another authority is not believed; the new authority is found by the API server', async () => {
  writeFileSync(tokenFile, await tokenFor(AUDIENCE));
  let aggregator = await startAggregator();
  const client = clientOf(() => aggregator.port);
  expect(await client.send(whole(), signal())).toBe('accepted');
  await aggregator.process.stop();
  kube.kubectl('delete', 'secret', `${SERVICE}-tls`, '-n', NAMESPACE);
  kube.kubectl('delete', 'configmap', `${SERVICE}-ca`, '-n', NAMESPACE);
  const { port } = aggregator;
  aggregator = await startAggregator();
  await expect(client.send(whole(2), signal())).rejects.toThrow(
    aggregator.port === port ? /certificate/ : /ECONNREFUSED|ECONNRESET|hang up/,
  );
  expect(await client.send(whole(3), signal())).toBe('accepted');
  // With the former authority in the ConfigMap nothing is sent at all.
  kube.kubectl(
    'patch',
    'configmap',
    `${SERVICE}-ca`,
    '-n',
    NAMESPACE,
    '--type=json',
    '-p',
    '[{"op":"replace","path":"/data/ca.crt","value":""}]',
  );
  await expect(clientOf(() => aggregator.port).send(whole(4), signal())).rejects.toThrow(/certificate/);
});

test('where there is no Service, that is said, so that it is not looked for all the time', async () => {
  writeFileSync(tokenFile, await tokenFor(AUDIENCE));
  await expect(clientOf(() => undefined).send(whole(), signal())).rejects.toThrow(NoAggregatorError);
});
