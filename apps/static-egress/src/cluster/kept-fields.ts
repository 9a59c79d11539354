import type { ObjectMeta } from '@unbounded/crds';
import type { Namespace, Node, Pod, Service } from '@unbounded/kube';

/** What is kept in memory of objects that others write: what a plan reads, and nothing else. */

const identityOf = ({ name, namespace, uid, resourceVersion, creationTimestamp, labels }: ObjectMeta): ObjectMeta => ({
  name,
  ...(namespace === undefined ? {} : { namespace }),
  ...(uid === undefined ? {} : { uid }),
  ...(resourceVersion === undefined ? {} : { resourceVersion }),
  ...(creationTimestamp === undefined ? {} : { creationTimestamp }),
  ...(labels === undefined ? {} : { labels }),
});

const typeOf = ({ apiVersion, kind }: { readonly apiVersion?: string; readonly kind?: string }) => ({
  ...(apiVersion === undefined ? {} : { apiVersion }),
  ...(kind === undefined ? {} : { kind }),
});

export const keptPod = (pod: Pod): Pod =>
  ({
    ...typeOf(pod),
    metadata: identityOf(pod.metadata),
    spec: { nodeName: pod.spec?.nodeName, hostNetwork: pod.spec?.hostNetwork },
    status: { phase: pod.status?.phase, podIPs: pod.status?.podIPs },
  }) as Pod;

/** It sends no more. */
export const isFinished = ({ status }: Pod): boolean => status?.phase === 'Succeeded' || status?.phase === 'Failed';

export const keptService = (service: Service): Service =>
  ({
    ...typeOf(service),
    metadata: identityOf(service.metadata),
    spec: {
      selector: service.spec?.selector,
      clusterIPs: service.spec?.clusterIPs,
      externalIPs: service.spec?.externalIPs,
    },
    status: { loadBalancer: service.status?.loadBalancer },
  }) as Service;

export const keptNamespace = (namespace: Namespace): Namespace => ({
  ...typeOf(namespace),
  metadata: identityOf(namespace.metadata),
});

/** Annotations too: some say what external addresses a node has. */
export const keptNode = (node: Node): Node =>
  ({
    ...typeOf(node),
    metadata: {
      ...identityOf(node.metadata),
      ...(node.metadata.annotations === undefined ? {} : { annotations: node.metadata.annotations }),
    },
    spec: { podCIDR: node.spec?.podCIDR, podCIDRs: node.spec?.podCIDRs },
    status: {
      addresses: node.status?.addresses,
      conditions: (node.status?.conditions ?? [])
        .filter(({ type }) => type === 'Ready')
        .map(({ type, status }) => ({ type, status })),
    },
  }) as Node;
