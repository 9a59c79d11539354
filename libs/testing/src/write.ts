import { ApiError, type Cluster } from '@unbounded/kube';

/** A write as a request, so that tables can hold any: what a program does with a stolen token needs no client of ours. */
export interface Write {
  readonly verb: 'create' | 'merge' | 'apply' | 'delete';
  /** Of the API server, below its root: of the collection for create, of the object for the others. */
  readonly path: string;
  readonly body?: object;
}

const METHODS = { create: 'POST', merge: 'PATCH', apply: 'PATCH', delete: 'DELETE' } as const;
const TYPES = { merge: 'application/merge-patch+json', apply: 'application/apply-patch+yaml' } as const;

/**
 * Asks whether the write would be taken, and changes nothing: a dry run passes authorization and admission like any other.
 * @throws ApiError when it is refused
 */
export const tryWrite = async ({ transport }: Cluster, { verb, path, body }: Write): Promise<void> => {
  const isApply = verb === 'apply';
  await transport.send({
    method: METHODS[verb],
    path,
    query: { dryRun: 'All', ...(isApply ? { fieldManager: 'test', force: true } : {}) },
    ...(body === undefined ? {} : { body }),
    ...(verb === 'merge' || isApply ? { contentType: TYPES[verb] } : {}),
  });
};

/** How the API server answers {@link tryWrite}: `taken`, or the status and message of its refusal. */
export const answerTo = (cluster: Cluster, write: Write): Promise<'taken' | { status: number; message: string }> =>
  tryWrite(cluster, write).then(
    () => 'taken' as const,
    (error: unknown) => {
      if (!(error instanceof ApiError)) throw error;
      return { status: error.status, message: error.message };
    },
  );

/** Paths of objects, for tables. */
const OURS = '/apis/net.unbounded-cloud.io/v1alpha1';
export const nodePath = (name: string, subresource = ''): string =>
  `/api/v1/nodes/${name}${subresource && `/${subresource}`}`;
export const ourPath = (plural: string, name = '', subresource = ''): string =>
  [OURS, plural, name, subresource].filter((part) => part !== '').join('/');
