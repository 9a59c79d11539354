import type { EgressNodeSlice } from '@unbounded/crds';
import type { KubeObject, Namespace, Node, Pod, Service } from '@unbounded/kube';

import { isFinished, keptNode, keptPod, keptService } from './kept-fields.ts';

/** What of an object a plan depends on, as text: an update that leaves it as it was needs no plan. */

const withoutVersion = (kept: KubeObject): string => {
  const { resourceVersion: _, ...metadata } = kept.metadata;
  return JSON.stringify({ ...kept, metadata });
};

/** From its creation to its end a pod goes through phases that change nothing. */
export const podPrint = (pod: Pod): string => {
  const kept = keptPod(pod);
  const phase = isFinished(pod) ? 'finished' : 'sending';
  return withoutVersion({ ...kept, status: { ...kept.status, phase } } as Pod);
};
export const servicePrint = (service: Service): string => withoutVersion(keptService(service));
export const nodePrint = (node: Node): string => withoutVersion(keptNode(node));
export const namespacePrint = ({ metadata }: Namespace): string => JSON.stringify(metadata.labels ?? {});

/** Without the heartbeat of the agent, and without the generation that it enforces, which follows each of our writes. */
export const slicePrint = ({ metadata, spec, status: { held, released, subnets } = {} }: EgressNodeSlice): string =>
  JSON.stringify([metadata.uid, spec, held, released, subnets]);

/** The spec by its generation, the status as it is. */
export const rulePrint = ({ metadata, status }: KubeObject & { readonly status?: unknown }): string =>
  JSON.stringify([metadata.uid, metadata.generation, status]);
