import { createHash } from 'node:crypto';

import { again, type Informer, type Reconcile } from '@unbounded/controller-runtime';
import { RELAY_SERVICE } from '@unbounded/config/ownership';
import type { GatewayPool, Mesh, SiteNodeSlice } from '@unbounded/crds';
import {
  type ConfigMap,
  type Deployment,
  ignoreGone,
  isForbidden,
  type Pod,
  type ResourceClient,
} from '@unbounded/kube';
import type { Logger } from '@unbounded/telemetry';

import { KEYS_ANNOTATION, KEYS_CONFIG_MAP, KEYS_FILE, planRelayKeys } from './relay-keys.plan.ts';
import { isOurs, keysConfigMap, meshOf, relayUse } from './relay.plan.ts';

/** Keeps the list of keys that the cluster's relays serve, and sees to it that their pods get it soon. */

const FIELD_MANAGER = 'unbounded-gateway-health';
const LOOK_AGAIN_MS = 30_000;
const PODS = `app.kubernetes.io/name=${RELAY_SERVICE}`;

export interface RelayKeysOptions {
  readonly caches: {
    readonly meshes: Informer<Mesh>;
    readonly slices: Informer<SiteNodeSlice>;
    readonly pools: Informer<GatewayPool>;
    /** Those named "relay". */
    readonly deployments: Informer<Deployment>;
    /** The one list. */
    readonly configMaps: Informer<ConfigMap>;
  };
  readonly clients: { readonly configMaps: ResourceClient<ConfigMap>; readonly pods: ResourceClient<Pod> };
  readonly namespace: string;
  readonly logger: Logger;
}

/** An annotation on each pod: its kubelet mounts what there is now instead of within a minute or two. */
const hurry = async ({ clients, namespace, logger }: RelayKeysOptions, text: string, signal: AbortSignal) => {
  const at = { namespace, signal };
  const digest = createHash('sha256').update(text).digest('hex').slice(0, 16);
  try {
    for (const { metadata } of await clients.pods.listAll({ ...at, labelSelector: PODS })) {
      if (metadata.deletionTimestamp !== undefined || metadata.annotations?.[KEYS_ANNOTATION] === digest) continue;
      const patch = { metadata: { annotations: { [KEYS_ANNOTATION]: digest } } };
      await clients.pods.mergePatch(metadata.name, patch, at).catch(ignoreGone);
    }
  } catch (error) {
    if (!isForbidden(error)) throw error;
    logger.warn({ reason: (error as Error).message }, 'relays get new keys only within two minutes');
  }
};

export const relayKeysReconciler =
  (options: RelayKeysOptions): Reconcile =>
  async (_key, signal) => {
    const { caches, clients, namespace } = options;
    const mesh = meshOf(caches.meshes.list());
    const { isManaged, listed } = relayUse(mesh, caches.deployments.list()[0]);
    const [found] = caches.configMaps.list();
    if (found && !isOurs(found)) return again(LOOK_AGAIN_MS); // somebody else's: the Mesh says so
    if (!listed) {
      const { uid } = found?.metadata ?? {};
      if (uid !== undefined)
        await clients.configMaps.delete(KEYS_CONFIG_MAP, { namespace, signal, uid }).catch(ignoreGone);
      return { kind: 'done' };
    }
    const keys = planRelayKeys(caches.slices.list(), caches.pools.list());
    if (found?.data?.[KEYS_FILE] === keys.text) {
      await hurry(options, keys.text, signal);
      return again(LOOK_AGAIN_MS);
    }
    const object = keysConfigMap({ namespace, ...(isManaged && mesh ? { mesh } : {}) }, keys.text);
    await clients.configMaps.apply(object, { namespace, signal, fieldManager: FIELD_MANAGER, force: true });
    return again(LOOK_AGAIN_MS); // and the pods when the watch has brought it
  };
