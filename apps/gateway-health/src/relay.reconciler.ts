import { randomBytes } from 'node:crypto';

import { again, type Informer, type Reconcile } from '@unbounded/controller-runtime';
import { RELAY_SERVICE } from '@unbounded/config/ownership';
import type { GatewayPool, Mesh, SiteNodeSlice } from '@unbounded/crds';
import {
  applyStatus,
  type ConfigMap,
  type Deployment,
  type EventRecorder,
  ignoreGone,
  isForbidden,
  isInvalid,
  type KubeObject,
  type NetworkPolicy,
  type Node,
  type PodDisruptionBudget,
  type ResourceClient,
  type Secret,
  type Service,
} from '@unbounded/kube';
import {
  formatEndpoint,
  type GatewayLike,
  publicAddresses,
  type ServiceLike,
  waysToManaged,
} from '@unbounded/relay-client';

import { KEYS_CONFIG_MAP, planRelayKeys } from './relay-keys.plan.ts';
import { planRelayConditions, type RelaySeen } from './relay-conditions.plan.ts';
import { createReadiness } from './relay-readiness.ts';
import {
  isOurs,
  LINKS_SECRET,
  linksSecret,
  meshOf,
  planDeployment,
  planDisruptionBudget,
  planNetworkPolicy,
  planServices,
  type RelayImage,
  type RelayPlace,
  relayUse,
} from './relay.plan.ts';

const FIELD_MANAGER = 'unbounded-gateway-health';
/** What nobody tells us of (the headless Service, the policy, the budget) is repaired within this. */
const LOOK_AGAIN_MS = 30_000;
const SECRET_BYTES = 32;

interface RelayClients {
  readonly meshes: ResourceClient<Mesh>;
  readonly deployments: ResourceClient<Deployment>;
  readonly services: ResourceClient<Service>;
  readonly secrets: ResourceClient<Secret>;
  readonly configMaps: ResourceClient<ConfigMap>;
  readonly networkPolicies: ResourceClient<NetworkPolicy>;
  readonly disruptionBudgets: ResourceClient<PodDisruptionBudget>;
}

export interface RelayReconcilerOptions {
  readonly caches: {
    readonly meshes: Informer<Mesh>;
    readonly nodes: Informer<Node>;
    readonly slices: Informer<SiteNodeSlice>;
    readonly pools: Informer<GatewayPool>;
    /** Those named "relay". */
    readonly deployments: Informer<Deployment>;
  };
  readonly clients: RelayClients;
  readonly recorder: EventRecorder;
  readonly namespace: string;
  /** Undefined: we were not told which. */
  readonly image: RelayImage | undefined;
  /** Milliseconds on a clock that only goes forward. */
  readonly elapsed?: () => number;
}

const newSecret = (): string => randomBytes(SECRET_BYTES).toString('base64');

const NO_IMAGE = 'gateway-health was started without --relay-image: the image that relays run';

interface Item {
  readonly client: ResourceClient<KubeObject>;
  readonly name: string;
  /** The relay works without it: somebody else's is left alone, and nothing else changes. */
  readonly isGuard?: true;
}

const itemsOf = ({
  deployments,
  services,
  secrets,
  configMaps,
  networkPolicies,
  disruptionBudgets,
}: RelayClients): Item[] => [
  { client: secrets, name: LINKS_SECRET },
  { client: configMaps, name: KEYS_CONFIG_MAP },
  { client: networkPolicies, name: RELAY_SERVICE, isGuard: true },
  { client: disruptionBudgets, name: RELAY_SERVICE, isGuard: true },
  { client: services, name: `${RELAY_SERVICE}-headless` },
  { client: deployments, name: RELAY_SERVICE },
  { client: services, name: RELAY_SERVICE },
];

const gatewaysOf = (pools: readonly GatewayPool[]) => pools.flatMap(({ status }) => status?.nodes ?? []);

export const relayPoolFingerprint = (pool: GatewayPool): string =>
  JSON.stringify([...publicAddresses(gatewaysOf([pool]))]);

const createRelay = ({ caches, clients, namespace, image }: RelayReconcilerOptions, signal: AbortSignal) => {
  const at = { namespace, signal };
  const look = async ({ client, name }: Item): Promise<KubeObject | undefined> =>
    client.get(name, at).catch(ignoreGone);
  const apply = (client: ResourceClient<KubeObject>, object: KubeObject) =>
    client.apply(object, { ...at, fieldManager: FIELD_MANAGER, force: true });
  const nameOf = ({ resource }: ResourceClient<KubeObject>, name: string) => `${resource.kind} ${namespace}/${name}`;

  /** Writes each of its own: what an admission policy, a webhook or a quota refuses is told, and the rest goes on. */
  const createWrites = () => {
    const refused: string[] = [];
    return {
      refused,
      async apply(client: ResourceClient<KubeObject>, object: KubeObject): Promise<KubeObject | undefined> {
        return apply(client, object).catch((error: unknown) => {
          if (!isForbidden(error) && !isInvalid(error)) throw error;
          refused.push(`${nameOf(client, object.metadata.name)}: ${(error as Error).message}`);
          return undefined;
        });
      },
    };
  };

  return {
    /** Takes away what is ours; a relay that is somebody else's keeps what it has from us. */
    async remove(isLinked: boolean): Promise<void> {
      for (const item of itemsOf(clients).toReversed()) {
        if (item.name === KEYS_CONFIG_MAP || (isLinked && item.name === LINKS_SECRET)) continue; // see relay-keys.reconciler.ts
        const found = await look(item);
        const { uid } = found?.metadata ?? {};
        if (!found || !isOurs(found) || uid === undefined) continue;
        await item.client.delete(item.name, { ...at, uid, propagationPolicy: 'Background' }).catch(ignoreGone);
      }
    },

    /** The secret of links for a relay that is not ours; one that is there stays. */
    async ensureLinks(): Promise<void> {
      if (await look({ client: clients.secrets, name: LINKS_SECRET })) return;
      await apply(clients.secrets, linksSecret({ namespace }, newSecret()));
    },

    /** Makes it as the Mesh says, unless something of it is not ours. */
    async ensure(place: RelayPlace, nodes: readonly Node[], gateways: readonly GatewayLike[]): Promise<RelaySeen> {
      const items = itemsOf(clients);
      const found = await Promise.all(items.map(look));
      const theirs = items.filter((_, index) => found[index] && !isOurs(found[index]));
      const named = (some: readonly Item[]): string[] => some.map(({ client, name }) => nameOf(client, name));
      const foundOf = (client: ResourceClient<KubeObject>) =>
        found[items.findIndex((item) => item.client === client && item.name === RELAY_SERVICE)];
      const foreign = named(theirs.filter(({ isGuard }) => !isGuard));
      const leftAlone = named(theirs.filter(({ isGuard }) => isGuard));
      const nothing: RelaySeen = { foreign, leftAlone, endpoints: [], availableReplicas: 0 };
      if (foreign.length > 0) return nothing;
      if (!image) return { ...nothing, obstacle: NO_IMAGE };
      const writes = createWrites();
      // Made once: replicas of before and after must know each other.
      if (!found[0]) await writes.apply(clients.secrets, linksSecret(place, newSecret()));
      for (const [client, object] of [
        [clients.networkPolicies, planNetworkPolicy(place)],
        [clients.disruptionBudgets, planDisruptionBudget(place)],
      ] as const)
        if (!theirs.some((item) => item.client === client)) await writes.apply(client, object);
      const [headless, outside] = planServices(place);
      await writes.apply(clients.services, headless);
      // What is refused stays as it is: it may carry traffic.
      const standing: Deployment | undefined = foundOf(clients.deployments);
      const deployment: Deployment | undefined =
        (await writes.apply(clients.deployments, planDeployment(place, image, standing))) ?? standing;
      const service = (await writes.apply(clients.services, outside)) ?? foundOf(clients.services);
      const ways = waysToManaged({ service: service as ServiceLike | undefined, nodes, gateways });
      const { availableReplicas = 0 } = deployment?.status ?? {};
      const { omitted } = planRelayKeys(caches.slices.list(), caches.pools.list());
      const endpoints = ways.map(formatEndpoint);
      return { foreign: [], leftAlone, refused: writes.refused, endpoints, availableReplicas, omittedKeys: omitted };
    },
  };
};

/** One key stands for the relay: there is one Mesh that counts. */
export const relayReconciler = (options: RelayReconcilerOptions): Reconcile => {
  const { caches, clients, namespace, recorder, elapsed = () => performance.now() } = options;
  const readiness = createReadiness(elapsed);
  return async (_key, signal) => {
    const relay = createRelay(options, signal);
    const meshes = caches.meshes.list();
    const mesh = meshOf(meshes);
    const { isManaged, linked } = relayUse(mesh, caches.deployments.list()[0]);
    if (!isManaged) await relay.remove(linked);
    if (linked) await relay.ensureLinks();
    // Looked at once: relays stand where they are said to be found.
    const gateways = gatewaysOf(caches.pools.list());
    const publicNodes = [...publicAddresses(gateways).keys()];
    const { standing, nextMs = Infinity } = readiness.accept(caches.nodes.list());
    const seen =
      isManaged && mesh ? await relay.ensure({ mesh, namespace, publicNodes }, standing, gateways) : undefined;
    for (const object of meshes) {
      const counts = object === mesh ? seen : undefined;
      const [relayEndpoint] = counts?.endpoints ?? [];
      const fields = relayEndpoint === undefined ? {} : { relayEndpoint };
      const conditions = planRelayConditions(object, counts);
      const by = { fieldManager: FIELD_MANAGER, signal, recorder };
      if (conditions.length > 0)
        await applyStatus(clients.meshes, object, { fields, conditions }, by).catch(ignoreGone);
    }
    return isManaged || linked ? again(Math.min(LOOK_AGAIN_MS, Math.max(nextMs, 1))) : { kind: 'done' };
  };
};
