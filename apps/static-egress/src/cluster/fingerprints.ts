import type { EgressNodeSlice } from '@unbounded/crds';
import type { KubeObject, Namespace, Node, Pod, Service } from '@unbounded/kube';

import { keptNode, keptPod, keptService } from './kept-fields.ts';

/** What of an object a plan depends on, as text: an update that leaves it as it was needs no plan. */

const withoutVersion = (kept: KubeObject): string => {
  const { resourceVersion: _, ...metadata } = kept.metadata;
  return JSON.stringify({ ...kept, metadata });
};

export const podPrint = (pod: Pod): string => withoutVersion(keptPod(pod));
export const servicePrint = (service: Service): string => withoutVersion(keptService(service));
export const nodePrint = (node: Node): string => withoutVersion(keptNode(node));
export const namespacePrint = ({ metadata }: Namespace): string => JSON.stringify(metadata.labels ?? {});

/** All but the heartbeat of the agent. */
export const slicePrint = ({ metadata, spec, status }: EgressNodeSlice): string => {
  const { heartbeat: _, ...rest } = status ?? {};
  return JSON.stringify([metadata.uid, spec, rest]);
};

/** The spec by its generation, the status as it is. */
export const rulePrint = ({ metadata, status }: KubeObject & { readonly status?: unknown }): string =>
  JSON.stringify([metadata.uid, metadata.generation, status]);
