import { GROUP_VERSION, type KindDefinition } from '@unbounded/crds';
import { type KubeObject, resourceOf } from '@unbounded/kube';
import type { ApiServer } from './index.ts';

type Create = (kind: KindDefinition, spec: object, name?: string) => Promise<KubeObject>;

/**
 * Creates objects by their specs, namespaced ones in `default`, each under a name of its own.
 * @param api of which there is a server when an object is created
 */
export const objectCreator = (api: () => ApiServer): Create => {
  let created = 0;
  return (kind, spec, name = `x${++created}`) => {
    const namespace = kind.scope === 'Namespaced' ? { namespace: 'default' } : {};
    const object = { apiVersion: GROUP_VERSION, kind: kind.kind, metadata: { name, ...namespace }, spec };
    return api().cluster.client(resourceOf(kind)).create(object);
  };
};

/** With which words the API server refuses the write. @throws Error where it takes it */
export const refusalOf = (write: Promise<unknown>): Promise<string> =>
  write.then(
    () => Promise.reject(new Error('the API server took what it was to refuse')),
    (reason: Error) => reason.message,
  );
