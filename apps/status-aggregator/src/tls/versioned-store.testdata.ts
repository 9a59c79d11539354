import { ApiError, type KubeObject, type ResourceClient } from '@unbounded/kube';

/** Objects of one kind in memory, with the preconditions of an API server. */
export const versionedStore = <T extends KubeObject>() => {
  const objects = new Map<string, T>();
  let version = 0;
  let writes = 0;
  const fail = (status: number, reason: string): never => {
    throw new ApiError('test', status, { reason });
  };
  const put = (object: T): T => {
    writes++;
    const stored = { ...object, metadata: { ...object.metadata, resourceVersion: String(++version) } };
    objects.set(object.metadata.name, stored);
    return stored;
  };
  const client: Pick<ResourceClient<T>, 'get' | 'create' | 'update'> = {
    get: async (name) => objects.get(name) ?? fail(404, 'NotFound'),
    create: async (object) => (objects.has(object.metadata.name) ? fail(409, 'AlreadyExists') : put(object)),
    update: async (object) => {
      const { resourceVersion } = objects.get(object.metadata.name)?.metadata ?? fail(404, 'NotFound');
      return resourceVersion === object.metadata.resourceVersion ? put(object) : fail(409, 'Conflict');
    },
  };
  return {
    client: client as ResourceClient<T>,
    objects,
    put,
    get writes() {
      return writes;
    },
  };
};
