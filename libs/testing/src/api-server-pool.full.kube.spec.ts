import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import type { ApiServer } from './api-server.ts';
import { type ApiServerPool, openApiServerPool } from './api-server-pool.ts';
import { type BorrowedServer, borrowFrom } from './borrowed-api-server.ts';
import { policySentinel } from './policy-sentinel.ts';

/** A pool of one server: whoever asks next gets the same, unless it ended. */

const folder = mkdtempSync(join(tmpdir(), 'unbounded-pool-'));
const path = join(folder, 'socket');
let pool: ApiServerPool;
beforeAll(async () => {
  pool = await openApiServerPool(path, 1);
});
afterEach(() => {
  lentNow.splice(0).forEach(giveBack); // also where a test fails
});
afterAll(async () => {
  await pool?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const lentNow: BorrowedServer[] = [];
const borrow = async (): Promise<BorrowedServer> => {
  const borrowed = await borrowFrom(path);
  lentNow.push(borrowed);
  return borrowed;
};
const giveBack = ({ api, connection }: BorrowedServer): void => {
  void api.stop();
  connection.destroy();
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
  giveBack(first);
  const second = await borrow();
  expect(second.directory).toBe(first.directory);
  expect({ objects: all(second.api), rules: rules(second.api) }).toEqual(before);
  const refused = policy.objects[0].metadata.name;
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
  giveBack(first);
  await second;
  expect(order).toEqual(['given back', 'lent']);
});

test('a server that ended is replaced', async () => {
  const first = await borrow();
  execFileSync('pkill', ['-KILL', '-f', `^${first.directory}/kube-apiserver`]);
  giveBack(first);
  const second = await borrow();
  expect(second.directory).not.toBe(first.directory);
  expect(namesOf(second.api, 'sites')).toEqual([]);
});
