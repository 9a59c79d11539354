import {
  GROUP_VERSION,
  type Mesh,
  MESH_NAME,
  meshKind,
  type TailnetDevice,
  tailnetAnnotations,
  tailnetDeviceKind,
  type TailnetSettings,
} from '@unbounded/crds';
import { clientOf, coreClients, ignoreGone, namespaces, pods, secrets, serviceAccounts } from '@unbounded/kube';
import { createKeyReceiver, type KeyReceiver } from '@unbounded/tailnet';
import { type ApiServer, type AppProcess, createNode, resetCluster, startApp, until } from '@unbounded/testing';
import { NAMESPACE } from '@unbounded/testing/chart';

import { CLIENT, type ControlServer } from './control-server.testdata.ts';

/** What is to be seen of the program on a real API server with a real control server, and what nodes and people do there. */

export const SHOP = 'shop';
export const SECRET = 'tailscale-cni-oauth';
const inShop = { namespace: SHOP } as const;
type Status = NonNullable<TailnetDevice['status']>;

const clientsOf = ({ cluster }: ApiServer) => ({
  meshes: clientOf(cluster, meshKind),
  devices: clientOf(cluster, tailnetDeviceKind),
  pods: cluster.client(pods),
  namespaces: cluster.client(namespaces),
  secrets: cluster.client(secrets),
  ...coreClients(cluster),
});

const base64 = (data: Record<string, string>): Record<string, string> =>
  Object.fromEntries(Object.entries(data).map(([key, text]) => [key, Buffer.from(text).toString('base64')]));

const createSettings = (clients: ReturnType<typeof clientsOf>, control: ControlServer) => ({
  /** Replaces the settings of the tailnet. */
  mesh: async (tailnet: Partial<TailnetSettings> = {}): Promise<void> => {
    const rules: TailnetSettings['rules'] = [{ namespaceSelector: {}, join: 'OnRequest', allowedTags: ['tag:web'] }];
    const settings: TailnetSettings = {
      controlURL: control.url,
      apiURL: control.url,
      credentials: { oauthClientSecret: SECRET },
      rules,
    };
    const metadata = { name: MESH_NAME };
    const spec = { tailnet: { ...settings, ...tailnet } };
    const mesh: Mesh = { apiVersion: GROUP_VERSION, kind: 'Mesh', metadata, spec };
    await clients.meshes.apply(mesh, { fieldManager: 'test', force: true });
  },
  withoutTailnet: async (): Promise<void> => {
    await clients.meshes.mergePatch(MESH_NAME, { spec: { tailnet: null } });
  },
  secret: async (data: Record<string, string> = { 'client-id': CLIENT.id, 'client-secret': `${CLIENT.secret}\n` }) => {
    const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: SECRET, namespace: NAMESPACE } };
    await clients.secrets.delete(SECRET, { namespace: NAMESPACE }).catch(ignoreGone);
    await clients.secrets.create({ ...secret, data: base64(data) });
  },
});

/** What a node does for the device of a pod. */
const createNodeSide = (clients: ReturnType<typeof clientsOf>, control: ControlServer) => {
  const device = (name: string): Promise<TailnetDevice> => clients.devices.get(name, inShop);
  const report = async (name: string, status: { readonly [K in keyof Status]?: Status[K] | null }): Promise<void> => {
    await clients.devices.mergePatch(name, { status }, { ...inShop, subresource: 'status' });
  };
  const keyFor = async (name: string, receiver: KeyReceiver): Promise<string> => {
    const { publicKey } = receiver;
    const { sealedKey, podUID } = await until(`${name} has a key`, async () => {
      const { status, spec } = await device(name);
      return status?.sealedKey?.publicKey === publicKey && { sealedKey: status.sealedKey, podUID: spec.podUID };
    });
    return receiver.open(sealedKey.sealed, podUID);
  };
  const askKey = async (name: string): Promise<string> => {
    const receiver = await createKeyReceiver();
    await until(`record ${name}`, () => device(name));
    await report(name, { keyRequest: { publicKey: receiver.publicKey }, state: 'NeedsLogin' });
    return keyFor(name, receiver);
  };
  const logIn = async (name: string): Promise<string> => {
    const key = await askKey(name);
    return control.login(key, (await device(name)).spec.hostName);
  };
  const condition = async (name: string) =>
    (await device(name)).status?.conditions?.find(({ type }) => type === 'Registered');
  return {
    ...{ device, report, keyFor, askKey, logIn, condition },
    /** Until it is bound; its ID. */
    register: async (name: string): Promise<string> => {
      const id = await logIn(name);
      await report(name, { reportedID: id, state: 'Running', keyRequest: null });
      await until(`${name} is registered`, async () => (await device(name)).status?.deviceID === id);
      return id;
    },
    becomes: (name: string, reason: string) =>
      until(`${name} is ${reason}`, async () => {
        const found = await condition(name);
        return found?.reason === reason && found;
      }),
  };
};

export const createTestCluster = (api: ApiServer, control: ControlServer) => {
  const clients = clientsOf(api);
  const apps: AppProcess[] = [];
  const everySettings = createSettings(clients, control);
  const deletePod = (name: string): Promise<void> =>
    api.cluster.transport
      .send({ method: 'DELETE', path: `/api/v1/namespaces/${SHOP}/pods/${name}`, body: { gracePeriodSeconds: 0 } })
      .then(() => undefined, ignoreGone);
  return {
    ...{ clients, apps, deletePod, ...everySettings, ...createNodeSide(clients, control) },
    addPod: async (name: string, annotations: Record<string, string> = {}, node = 'n1'): Promise<string> => {
      const spec = { nodeName: node, automountServiceAccountToken: false, containers: [{ name: 'c', image: 'i' }] };
      const asked = { [tailnetAnnotations.join]: 'true', ...annotations };
      const { metadata } = await clients.pods.create({ metadata: { name, ...inShop, annotations: asked }, spec });
      return metadata.uid!;
    },
    isGone: (name: string) =>
      until(`record ${name} is gone`, () =>
        clients.devices.get(name, inShop).then(
          () => false,
          (error) => ignoreGone(error) === undefined,
        ),
      ),
    meshCondition: async () =>
      (await clients.meshes.get(MESH_NAME)).status?.conditions?.find(({ type }) => type === 'TailnetReady'),
    start: (...args: string[]): AppProcess => {
      const flags = ['--kubeconfig', api.kubeconfig, '--sweep-interval=500ms', ...args];
      const app = startApp('tailnet-registrar', flags, { NODE_EXTRA_CA_CERTS: control.certificate });
      apps.push(app);
      return app;
    },
    /** As after an installation: nodes, a namespace, a Mesh with a tailnet, its Secret. */
    prepare: async (): Promise<void> => {
      await resetCluster(api.cluster);
      for (const name of ['n1', 'n2']) await createNode(clients.nodes, { name });
      await clients.namespaces.create({ metadata: { name: SHOP } }).catch(() => undefined);
      const account = { metadata: { name: 'default', ...inShop } };
      await api.cluster
        .client(serviceAccounts)
        .create(account)
        .catch(() => undefined);
      await everySettings.secret();
      await everySettings.mesh();
    },
    /** What a test made goes, by the program; the program stays. */
    clear: async (): Promise<void> => {
      for (const { metadata } of await clients.pods.listAll(inShop)) await deletePod(metadata.name);
      await until('no records', async () => (await clients.devices.listAll()).length === 0);
      for (const { id } of await control.nodes()) await control.deleteDevice(id);
    },
    stopAll: async (): Promise<void> => {
      for (const app of apps.splice(0)) await app.stop('SIGKILL');
    },
  };
};
