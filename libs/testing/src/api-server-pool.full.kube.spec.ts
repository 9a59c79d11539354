import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { openCluster } from '@unbounded/kube/open-cluster';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { type ApiServer, useServer } from './api-server.ts';
import { adminKubeconfig, type ServerProcess } from './api-server-process.ts';
import { type ApiServerPool, openApiServerPool } from './api-server-pool.ts';
import { policySentinel } from './policy-sentinel.ts';

/** A pool of one server: whoever asks next gets the same, unless it ended. */

const folder = mkdtempSync(join(tmpdir(), 'unbounded-pool-'));
const path = join(folder, 'socket');
let pool: ApiServerPool;
beforeAll(async () => {
  pool = await openApiServerPool(path, 1);
});
afterEach(() => {
  for (const borrowed of lentNow.splice(0)) borrowed.giveBack(); // also where a test fails
});
afterAll(async () => {
  await pool?.stop();
  rmSync(folder, { recursive: true, force: true });
});

interface Borrowed {
  readonly lent: Pick<ServerProcess, 'directory' | 'address'>;
  readonly api: ApiServer;
  giveBack(): void;
}

const lentNow: Borrowed[] = [];
const borrow = async (): Promise<Borrowed> => {
  const socket = connect(path);
  const [line] = (await once(createInterface(socket), 'line')) as [string];
  const lent = JSON.parse(line) as Borrowed['lent'];
  const cluster = openCluster({ kubeconfig: adminKubeconfig(lent.directory) });
  const api = useServer({ ...lent, cluster }, async () => cluster.close());
  const giveBack = (): void => {
    cluster.close();
    socket.destroy();
  };
  const borrowed = { lent, api, giveBack };
  lentNow.push(borrowed);
  return borrowed;
};

const namesOf = (api: ApiServer, resource: string): string[] =>
  api.kubectl('get', resource, '-A', '-o', 'name').split('\n').filter(Boolean);

const LEFT = `
apiVersion: v1
kind: Namespace
metadata: { name: left }
---
apiVersion: v1
kind: ConfigMap
metadata: { name: left, namespace: left }
---
apiVersion: net.unbounded-cloud.io/v1alpha1
kind: Site
metadata: { name: left, finalizers: [example.com/nobody] }
spec: { nodeCidrs: [10.1.0.0/16], podCidrAssignments: [{ cidrBlocks: [100.64.0.0/16] }] }
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: { name: 'system:basic-user' }
rules: []
`;

test('what a file made, changed and deleted is as before for the next one, and none of its policies is in force', async () => {
  const first = await borrow();
  const kinds = ['namespaces', 'configmaps', 'sites', 'clusterroles', 'validatingadmissionpolicies'];
  const all = (api: ApiServer): string[] => kinds.flatMap((kind) => namesOf(api, kind));
  const rules = (api: ApiServer): string =>
    api.kubectl('get', 'clusterrole', 'system:basic-user', '-o', 'jsonpath={.rules}');
  const before = { objects: all(first.api), rules: rules(first.api) };
  const policy = policySentinel();
  first.api.apply([LEFT, ...policy.objects.map((object) => JSON.stringify(object))].join('\n---\n'));
  first.api.kubectl('delete', 'clusterrole', 'view');
  await policy.untilInForce(first.api.cluster);
  expect(all(first.api)).not.toEqual(before.objects);
  expect(rules(first.api)).not.toBe(before.rules);
  first.giveBack();
  const second = await borrow();
  expect(second.lent).toEqual(first.lent);
  expect({ objects: all(second.api), rules: rules(second.api) }).toEqual(before);
  const refused = policy.objects[0]!.metadata.name;
  expect(second.api.kubectl('create', 'configmap', refused)).toContain('created');
});

test('where all servers are lent, a file waits for the first that is given back', async () => {
  const first = await borrow();
  const order: string[] = [];
  const second = borrow().then((borrowed) => {
    order.push('lent');
    return borrowed;
  });
  first.api.kubectl('get', 'sites'); // meanwhile
  await new Promise(setImmediate);
  order.push('given back');
  first.giveBack();
  await second;
  expect(order).toEqual(['given back', 'lent']);
});

test('a server that ended is replaced', async () => {
  const first = await borrow();
  execFileSync('pkill', ['-KILL', '-f', `^${first.lent.directory}/kube-apiserver`]);
  first.giveBack();
  const second = await borrow();
  expect(second.lent.directory).not.toBe(first.lent.directory);
  expect(namesOf(second.api, 'sites')).toEqual([]);
});
