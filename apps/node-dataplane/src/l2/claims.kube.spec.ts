import {
  type Network,
  networkEndpointKind,
  fdbEntryKind,
  neighborKind,
  networkKind,
  GROUP_VERSION,
  labels,
} from '@unbounded/crds';
import { type Cluster, clientOf, coreClients, namespaces } from '@unbounded/kube';
import { openCluster } from '@unbounded/kube/open-cluster';
import { type AskedNetwork, neighborName } from '@unbounded/l2';
import {
  type ApiServer,
  borrowApiServer,
  createNode,
  installAccessRules,
  kubeconfigOf,
  resetCluster,
} from '@unbounded/testing';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { type Claims, createClaims, type WantedEndpoint } from './claims.ts';

/** With the tokens of agents, under the chart's own roles and policies. */

const SHOP = 'shop';
let api: ApiServer;
const open: Cluster[] = [];
let [n1, n2]: Claims[] = [];
let lan: Network;

const claimsOf = async (node: string): Promise<Claims> => {
  const cluster = openCluster({ kubeconfig: await kubeconfigOf(api, 'node-dataplane', node) });
  open.push(cluster);
  return createClaims(cluster, node);
};

beforeAll(async () => {
  api = await borrowApiServer();
  await resetCluster(api.cluster);
  await installAccessRules(api, { 'l2-networks': { enabled: true } });
  for (const name of ['n1', 'n2']) await createNode(coreClients(api.cluster).nodes, { name });
  await api.cluster
    .client(namespaces)
    .create({ metadata: { name: SHOP } })
    .catch(() => undefined);
  [n1, n2] = [await claimsOf('n1'), await claimsOf('n2')];
});
afterAll(async () => {
  for (const cluster of open) cluster.close();
  await api?.stop();
});
beforeEach(async () => {
  for (const { metadata } of await clientOf(api.cluster, networkEndpointKind).listAll()) {
    const { name, namespace } = metadata;
    await clientOf(api.cluster, networkEndpointKind).mergePatch(
      name,
      { metadata: { finalizers: null } },
      { namespace },
    );
    await clientOf(api.cluster, networkEndpointKind)
      .delete(name, { namespace })
      .catch(() => undefined);
  }
  for (const kind of [fdbEntryKind, neighborKind, networkKind])
    for (const { metadata } of await clientOf(api.cluster, kind).listAll())
      await clientOf(api.cluster, kind).delete(metadata.name);
  lan = await clientOf(api.cluster, networkKind).create({
    ...{ apiVersion: GROUP_VERSION, kind: 'Network', metadata: { name: 'lan' } },
    spec: { prefixes: ['192.0.2.0/27', '2001:db8::/64'], namespaceSelector: {} },
  });
});

const signal = (): AbortSignal => AbortSignal.timeout(20_000);
const wanted = (
  pod: string,
  asked: Partial<AskedNetwork> = {},
  rest: Partial<WantedEndpoint> = {},
): WantedEndpoint => ({
  ...{ namespace: SHOP, pod, podUid: `uid-${pod}`, network: lan, isTrusted: false, taken: [] },
  asked: { network: 'lan', interface: 'net1', ...asked },
  ...rest,
});
/** Names of endpoints and entries. */
const standing = async (): Promise<string[]> => {
  const lists = [networkEndpointKind, fdbEntryKind, neighborKind].map((kind) => clientOf(api.cluster, kind).listAll());
  return (await Promise.all(lists)).flat().map(({ metadata }) => metadata.name);
};

test('an endpoint has an entry for its MAC and each address, of its node; nothing of it is left when it is released', async () => {
  const endpoint = await n1!.claim(wanted('web'), signal());
  const nodeUID = (await coreClients(api.cluster).nodes.get('n1')).metadata.uid;
  expect(endpoint.spec).toMatchObject({ network: 'lan', node: 'n1', nodeUID, pod: 'web', interface: 'net1' });
  expect(await standing()).toHaveLength(4);
  for (const entry of await clientOf(api.cluster, neighborKind).listAll())
    expect(entry.status).toEqual({ endpoint: 'shop/web.net1', managingNode: 'n1', mac: endpoint.spec.mac });
  expect(await n1!.claim(wanted('web'), signal())).toMatchObject({ metadata: { uid: endpoint.metadata.uid } });
  await n1!.release(endpoint);
  expect(await standing()).toEqual([]);
  await n1!.release(endpoint);
});

test('a pod that comes back under its name has its MAC and addresses again, as an endpoint of its own', async () => {
  const former = await n1!.claim(wanted('web-0'), signal());
  const again = await n1!.claim(wanted('web-0', {}, { podUid: 'uid-later' }), signal());
  expect([again.spec.mac, again.spec.addresses]).toEqual([former.spec.mac, former.spec.addresses]);
  expect(again.metadata.uid).not.toBe(former.metadata.uid);
  expect(await standing()).toHaveLength(4);
  await n1!.release(former); // late: what stands is of the other one
  expect(await standing()).toHaveLength(4);
});

test('pods that start at the same moment on two nodes get different addresses', async () => {
  const pods = Array.from({ length: 20 }, (_, at) => `p${at}`);
  const endpoints = await Promise.all(pods.map((pod, at) => (at % 2 ? n1! : n2!).claim(wanted(pod), signal())));
  const addresses = endpoints.flatMap(({ spec }) => spec.addresses);
  expect(new Set(addresses).size).toBe(40);
  expect(await standing()).toHaveLength(80);
});

test('an address or a MAC that is asked for and is another’s is refused with whose it is, and nothing of the attempt is left', async () => {
  const asked = { addresses: ['192.0.2.9'], mac: '02:00:00:00:00:09' };
  await n1!.claim(wanted('db', asked), signal());
  const before = await standing();
  await expect(n2!.claim(wanted('web', { addresses: ['192.0.2.9'] }), signal())).rejects.toThrow(
    'Neighbor 192.0.2.9 is taken by endpoint shop/db.net1',
  );
  await expect(n2!.claim(wanted('web', { mac: '02:00:00:00:00:09' }), signal())).rejects.toThrow(
    'FDBEntry 02:00:00:00:00:09 is taken by endpoint shop/db.net1',
  );
  expect(await standing()).toEqual(before);
});

test('an address that was released is another’s at once, on whichever node', async () => {
  const asked = { addresses: ['192.0.2.9'] };
  await n1!.release(await n1!.claim(wanted('db', asked), signal()));
  expect((await n2!.claim(wanted('other', asked), signal())).spec.addresses).toEqual(['192.0.2.9']);
});

test('an endpoint of that name on another node is waited for', async () => {
  await n1!.claim(wanted('web'), signal());
  await expect(n2!.claim(wanted('web'), signal())).rejects.toThrow('NetworkEndpoint shop/web.net1 is on node n1 still');
});

test('a node does not release what is another’s', async () => {
  const endpoint = await n1!.claim(wanted('web'), signal());
  await expect(n2!.release(endpoint)).rejects.toThrow('only of its own node');
  expect(await standing()).toHaveLength(4);
});

test('a pool without a free address is an error that names the family', async () => {
  lan = { ...lan, spec: { ...lan.spec, prefixes: ['192.0.2.0/30'] } };
  for (const pod of ['a', 'b']) await n1!.claim(wanted(pod), signal());
  await expect(n1!.claim(wanted('c'), signal())).rejects.toThrow('no IPv4 address of the network is free');
  expect(await standing()).toHaveLength(6);
});

test('an abandoned entry is taken over; one that is removed at that moment is made again', async () => {
  const agent = open[0]!;
  const address = '192.0.2.9';
  const neighbors = clientOf(api.cluster, neighborKind);
  const name = neighborName('lan', address);
  const abandon = () =>
    neighbors.create({
      ...{ apiVersion: GROUP_VERSION, kind: 'Neighbor' },
      metadata: { name, labels: { [labels.network]: 'lan' } },
      spec: { network: 'lan', ip: address, source: 'static' },
    });
  const made = await abandon();
  const asked = { addresses: [address] };
  await n1!.release(await n1!.claim(wanted('web', asked), signal()));
  expect(await standing()).toEqual([]);
  let removals = 0;
  /** The controller removes what is abandoned before the first status is written. */
  const client: Cluster['client'] = (resource) => {
    const real = agent.client(resource);
    const mergePatch: typeof real.mergePatch = async (patched, ...rest) => {
      if (patched === name && removals++ === 0) await neighbors.delete(name);
      return real.mergePatch(patched, ...rest);
    };
    return { ...real, mergePatch };
  };
  const again = await abandon();
  const endpoint = await createClaims({ ...agent, client }, 'n1').claim(wanted('web', asked), signal());
  expect(endpoint.spec.addresses).toEqual([address]);
  const entry = await neighbors.get(name);
  expect([made.metadata.uid, again.metadata.uid]).not.toContain(entry.metadata.uid);
  expect(entry.status).toMatchObject({ endpoint: 'shop/web.net1', managingNode: 'n1' });
});
