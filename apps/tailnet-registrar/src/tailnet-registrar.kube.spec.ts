import { MESH_NAME, podConditions, TAILNET_DEVICE_FINALIZER, tailnetAnnotations } from '@unbounded/crds';
import { createKeyReceiver } from '@unbounded/tailnet';
import { type ApiServer, type AppProcess, borrowApiServer, expireLeases, until } from '@unbounded/testing';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';

import { AUTH_KEY, CLIENT, type ControlServer, startControlServer } from './control-server.testdata.ts';
import { createTestCluster, SECRET, SHOP } from './test-cluster.testdata.ts';

/** The program between a real API server and a real control server. One process serves all tests; the last one ends it. */

let api: ApiServer;
let control: ControlServer;
let world: ReturnType<typeof createTestCluster>;
let app: AppProcess;
const given = new Set<string>();

beforeAll(async () => {
  [api, control] = await Promise.all([borrowApiServer(), startControlServer()]);
  world = createTestCluster(api, control);
  await world.prepare();
  app = world.start();
});
afterEach(async () => {
  for (const path of ['/api/v2/tailnet/-/keys', '/api/v2/tailnet/-/devices', '/api/v2/*']) await control.heal(path);
  await world.clear();
});
afterAll(async () => {
  await world?.stopAll();
  await Promise.all([api?.stop(), control?.stop()]);
});

const { tags: TAGS, hostName: NAME } = tailnetAnnotations;
const nodeNames = async (): Promise<string[]> => (await control.nodes()).map(({ name }) => name).sort();
const eventsAbout = async (kind: string, name: string) =>
  (await world.clients.events.listAll({ namespace: SHOP })).filter(
    ({ regarding }) => regarding?.kind === kind && regarding.name === name,
  );
const metrics = async (of: AppProcess): Promise<string> => (await of.health('/metrics')).body;
const KEYS = 'POST /api/v2/tailnet/-/keys';

test('a pod that asks gets a record, its node a key for one device, and the device goes with the pod', async () => {
  const uid = await world.addPod('web-0', { [TAGS]: 'tag:web' });
  const record = await until('a record', () => world.device('web-0'));
  expect(record).toMatchObject({
    metadata: {
      finalizers: [TAILNET_DEVICE_FINALIZER],
      ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: 'web-0', uid }],
    },
    spec: {
      node: 'n1',
      pod: 'web-0',
      podUID: uid,
      hostName: 'k8s-shop-web-0',
      tags: ['tag:web'],
      controlURL: control.url,
    },
  });
  await world.becomes('web-0', 'WaitingForNode');
  await until('the pod says so', async () =>
    (await world.clients.pods.get('web-0', { namespace: SHOP })).status?.conditions?.some(
      ({ type, status }) => type === podConditions.tailnet && status === 'False',
    ),
  );
  const key = await world.askKey('web-0');
  given.add(key);
  await world.becomes('web-0', 'KeyGiven');
  const id = await control.login(key, 'k8s-shop-web-0');
  await expect(control.login(key, 'k8s-shop-web-0')).rejects.toThrow('already used');
  await world.report('web-0', { reportedID: id, state: 'Running', keyRequest: null });
  await world.becomes('web-0', 'Registered');
  const { status } = await world.device('web-0');
  expect(status).toMatchObject({ deviceID: id, keysGiven: 1 });
  expect([status?.sealedKey, status?.keyID]).toEqual([undefined, undefined]);
  expect((await control.nodes())[0]).toMatchObject({ id, tags: ['tag:web'] });
  await until('metrics', async () => (await metrics(app)).includes('unbounded_tailnet_devices{state="Running"} 1'));
  await until('the Mesh is ready', async () => (await world.meshCondition())?.reason === 'Ready');
  await until('the pod says that it is up', async () =>
    (await world.clients.pods.get('web-0', { namespace: SHOP })).status?.conditions?.some(
      ({ type, status: said }) => type === podConditions.tailnet && said === 'True',
    ),
  );
  await world.deletePod('web-0');
  await world.isGone('web-0');
  expect(await nodeNames()).toEqual([]);
  expect(await control.requests(`DELETE /api/v2/device/${id}`)).toBe(1);
});

test('what no rule allows is an Event of the pod, once; a pod beside it is not affected', async () => {
  await world.addPod('bad', { [TAGS]: 'tag:db' });
  await world.addPod('good');
  await until('a record', () => world.device('good'));
  const events = await until('an Event', async () => {
    const found = await eventsAbout('Pod', 'bad');
    return found.length > 0 && found;
  });
  expect(events).toMatchObject([
    {
      reason: 'TailnetRefused',
      type: 'Warning',
      note: expect.stringContaining(`annotation ${TAGS} is "tag:db": tag:db is not allowed`) as string,
    },
  ]);
  await world.addPod('more');
  await until('another pass', () => world.device('more'));
  expect(await eventsAbout('Pod', 'bad')).toEqual(events);
});

test('of two pods that ask for one name each has its own', async () => {
  for (const name of ['a', 'b']) await world.addPod(name, { [NAME]: 'db' });
  const names = await Promise.all(
    ['a', 'b'].map(async (name) => (await until(`record ${name}`, () => world.device(name))).spec.hostName),
  );
  expect(names.toSorted()).toEqual(['db', expect.stringMatching(/^db-[0-9a-f]{8}$/)]);
  for (const name of ['a', 'b']) await world.register(name);
  expect(await nodeNames()).toEqual(names.map((name) => `${name}.pods.test`).sort());
});

test('a node that asks again and again gets one key, and no other before ten seconds have passed', async () => {
  await world.addPod('greedy');
  const before = await control.requests(KEYS);
  const key = await world.askKey('greedy');
  for (let request = 0; request < 5; request++) {
    const { publicKey } = await createKeyReceiver();
    await world.report('greedy', { keyRequest: { publicKey } });
  }
  // Another record is served meanwhile, and after it.
  await world.addPod('modest');
  await world.askKey('modest');
  expect(await control.requests(KEYS)).toBe(before + 2);
  await control.login(key, (await world.device('greedy')).spec.hostName);
  // Its node never tells of the device: it is found all the same.
  await world.deletePod('greedy');
  await world.isGone('greedy');
  expect(await nodeNames()).toEqual([]);
});

test('what is no public key gets no key, and costs no request', async () => {
  await world.addPod('odd');
  await until('record', () => world.device('odd'));
  const before = await control.requests(KEYS);
  await world.report('odd', { keyRequest: { publicKey: `${'A'.repeat(43)}=` } });
  await world.becomes('odd', 'KeyRequestRefused');
  expect(await control.requests(KEYS)).toBe(before);
});

test('a pod that runs elsewhere, or is being deleted, gets no key', async () => {
  const finalizers = ['a.b/c'];
  await world.addPod('leaving');
  await until('record', () => world.device('leaving'));
  await world.clients.pods.mergePatch('leaving', { metadata: { finalizers } }, { namespace: SHOP });
  await world.deletePod('leaving');
  const before = await control.requests(KEYS);
  await world.report('leaving', { keyRequest: { publicKey: (await createKeyReceiver()).publicKey } });
  await world.becomes('leaving', 'PodNotThere');
  expect(await control.requests(KEYS)).toBe(before);
  await world.clients.pods.mergePatch('leaving', { metadata: { finalizers: null } }, { namespace: SHOP });
});

test('a device of somebody else that a node names is neither taken nor deleted', async () => {
  for (const name of ['own', 'thief']) await world.addPod(name);
  const id = await world.register('own');
  await until('record', () => world.device('thief'));
  await world.report('thief', { reportedID: id });
  expect((await world.becomes('thief', 'ForeignDevice')).message).toContain('is that of another pod');
  const stranger = await control.login(await world.askKey('thief'), 'laptop');
  await world.report('thief', { reportedID: stranger, keyRequest: null });
  await until('says why', async () => (await world.condition('thief'))?.message.includes('its host name is "laptop"'));
  await world.deletePod('thief');
  await world.isGone('thief');
  expect((await control.nodes()).map((node) => node.id).sort()).toEqual([id, stranger].sort());
});

test('a device that logged in anew replaces the one before', async () => {
  await world.addPod('web-0');
  await world.register('web-0');
  // As by another key of the record, for which a node has to wait ten seconds.
  const second = await control.login(AUTH_KEY, 'k8s-shop-web-0');
  await world.report('web-0', { reportedID: second });
  await until('bound', async () => (await world.device('web-0')).status?.deviceID === second);
  expect((await control.nodes()).map(({ id }) => id)).toEqual([second]);
});

test('a device that is deleted at the control server is noticed', async () => {
  await world.addPod('web-0');
  const id = await world.register('web-0');
  await control.deleteDevice(id);
  await world.becomes('web-0', 'DeviceGone');
  const { deviceID, goneID } = (await world.device('web-0')).status!;
  expect([deviceID, goneID]).toEqual([undefined, id]);
});

test('a list that knows no device is not believed, until somebody writes that they are gone', async () => {
  const names = ['web-0', 'web-1'];
  for (const name of names) await world.addPod(name);
  const ids = await Promise.all(names.map((name) => world.register(name)));
  // As after a change of the credentials to those of another tailnet: no list has one of them alone.
  const lists = '/api/v2/tailnet/-/devices';
  await control.fail({ path: lists, status: 500 });
  for (const id of ids) await control.deleteDevice(id);
  await control.heal(lists);
  await until('doubt', async () => (await world.meshCondition())?.reason === 'NoDeviceKnown');
  await world.deletePod('web-1');
  await world.becomes('web-1', 'NotRemoved');
  const receiver = await createKeyReceiver();
  await world.addPod('web-2');
  await until('record', () => world.device('web-2'));
  await world.report('web-2', { keyRequest: { publicKey: receiver.publicKey }, state: 'NeedsLogin' });
  await world.becomes('web-2', 'NoDeviceKnown');
  expect((await world.device('web-0')).status?.deviceID).toBe(ids[0]);
  for (const [at, name] of names.entries()) {
    const patch = JSON.stringify({ status: { deviceID: null, goneID: ids[at] } });
    const device = ['tailnetdevice', '--namespace', SHOP, name];
    api.kubectl('patch', ...device, '--subresource=status', '--type=merge', '--patch', patch); // docs/tailnet.md
  }
  await until('ready', async () => (await world.meshCondition())?.reason === 'Ready');
  await world.keyFor('web-2', receiver);
  await world.isGone('web-1');
});

test('a list that fails says nothing about any device', async () => {
  await world.addPod('web-0');
  const id = await world.register('web-0');
  const lists = 'GET /api/v2/tailnet/-/devices';
  await control.fail({ path: '/api/v2/tailnet/-/devices', status: 500 });
  const before = await control.requests(lists);
  await until('lists', async () => (await control.requests(lists)) >= before + 2);
  await control.heal('/api/v2/tailnet/-/devices');
  expect((await world.device('web-0')).status?.deviceID).toBe(id);
});

test('while the control server is away records wait, and it goes on by itself', async () => {
  for (const name of ['old', 'new']) await world.addPod(name);
  await world.register('old');
  await control.fail({ path: '/api/v2/*', status: 503 });
  await until('record', () => world.device('new'));
  const receiver = await createKeyReceiver();
  await world.report('new', { keyRequest: { publicKey: receiver.publicKey }, state: 'NeedsLogin' });
  await world.deletePod('old');
  await world.becomes('new', 'ControlServerUnreachable');
  await world.becomes('old', 'NotRemoved');
  await until('the Mesh says so', async () => (await world.meshCondition())?.reason === 'ControlServerUnreachable');
  expect(await metrics(app)).toContain('unbounded_tailnet_pending_deletions 1');
  await control.heal('/api/v2/*');
  await world.keyFor('new', receiver);
  await world.isGone('old');
  expect(await nodeNames()).toEqual([]);
  await until('ready', async () => (await world.meshCondition())?.status === 'True');
});

test('a server that says when is not asked before', async () => {
  await world.addPod('web-0');
  await until('record', () => world.device('web-0'));
  await control.fail({ path: '/api/v2/tailnet/-/keys', count: 1, status: 429, retryAfterSeconds: 2 });
  const receiver = await createKeyReceiver();
  const before = await control.requests(KEYS);
  const beganMs = performance.now();
  await world.report('web-0', { keyRequest: { publicKey: receiver.publicKey }, state: 'NeedsLogin' });
  await until('asked', async () => (await control.requests(KEYS)) > before);
  const all = await control.requests('GET /api/v2/*');
  let asked = all;
  for (let now = all; (await control.requests(KEYS)) === before + 1; now = await control.requests('GET /api/v2/*'))
    asked = now;
  await world.keyFor('web-0', receiver);
  expect(performance.now() - beganMs).toBeGreaterThan(1900); // from before it was asked, which is seen late on a busy machine
  expect(await control.requests(KEYS)).toBe(before + 2);
  expect(asked - all).toBeLessThan(3);
});

test('a token that is no longer good is replaced', async () => {
  await world.addPod('web-0');
  const tokens = await control.requests('POST /api/v2/oauth/token');
  await control.fail({ path: '/api/v2/tailnet/-/keys', count: 1, status: 401 });
  await world.register('web-0');
  expect(await control.requests('POST /api/v2/oauth/token')).toBe(tokens + 1);
});

test('without tailnet settings all devices and records go, and the status of the Mesh with them', async () => {
  for (const name of ['a', 'b']) await world.addPod(name);
  for (const name of ['a', 'b']) await world.register(name);
  await world.withoutTailnet();
  for (const name of ['a', 'b']) await world.isGone(name);
  expect(await nodeNames()).toEqual([]);
  await until('no status', async () => (await world.clients.meshes.get(MESH_NAME)).status?.tailnet === undefined);
  await until('the Mesh says nothing', async () => (await world.meshCondition()) === undefined);
  for (const name of ['a', 'b']) await world.deletePod(name);
  await world.mesh();
  await until('again', async () => (await world.meshCondition())?.status === 'True');
});

test('a Mesh that is deleted and made anew ends nothing', async () => {
  await world.addPod('web-0');
  const id = await world.register('web-0');
  const before = (await world.device('web-0')).metadata.uid;
  await world.clients.meshes.delete(MESH_NAME);
  await world.addPod('later');
  await until('it is seen', async () => (await eventsAbout('Pod', 'later')).length > 0);
  await world.mesh();
  await until('a record', () => world.device('later'));
  expect((await world.device('web-0')).metadata.uid).toBe(before);
  expect(await control.requests(`DELETE /api/v2/device/${id}`)).toBe(0);
});

/** Who takes over reads the Secret anew. */
test('of two replicas one works, and the other goes on where it was; it tells what is wrong with the Secret, and needs no restart', async () => {
  const logs = [app.log];
  await world.addPod('web-0');
  const id = await world.register('web-0');
  const second = world.start();
  logs.push(second.log);
  await until('follows', async () => (await second.health('/readyz')).status === 200);
  await app.stop('SIGKILL');
  await world.secret({ 'client-id': CLIENT.id });
  await world.deletePod('web-0');
  await world.addPod('web-1');
  await expireLeases(api.cluster);
  await until('it is told', async () => {
    const found = await world.meshCondition();
    const text = `Secret unbounded-system/${SECRET} has no client-secret`;
    return found?.reason === 'CredentialsMissing' && found.message.includes(text);
  });
  await until('record', () => world.device('web-1'));
  const receiver = await createKeyReceiver();
  await world.report('web-1', { keyRequest: { publicKey: receiver.publicKey }, state: 'NeedsLogin' });
  await world.becomes('web-1', 'CredentialsMissing');
  await world.secret();
  const key = await world.keyFor('web-1', receiver);
  expect(key).toMatch(/^tskey-auth-/);
  given.add(key);
  await world.isGone('web-0');
  expect(await control.requests(`DELETE /api/v2/device/${id}`)).toBe(1);
  const next = await control.login(key, 'k8s-shop-web-1');
  await world.report('web-1', { reportedID: next, state: 'Running', keyRequest: null });
  await world.becomes('web-1', 'Registered');
  const objects = await Promise.all(
    [world.clients.devices, world.clients.meshes, world.clients.events, world.clients.pods].map((client) =>
      client.listAll(),
    ),
  );
  const everything = JSON.stringify([logs, objects, await metrics(second)]);
  // Of no secret is anything anywhere.
  for (const secret of [CLIENT.secret, ...given, 'tskey-']) expect(everything).not.toContain(secret);
});
