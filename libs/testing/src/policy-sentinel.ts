import { randomUUID } from 'node:crypto';

import { type Cluster, isForbidden } from '@unbounded/kube';

import { until } from './until.ts';
import { tryWrite } from './write.ts';

/**
 * The API server enforces admission policies a moment after they are written (it looks each second at what has changed), in that order: when
 * one that is written last is in force, those before are as well, and those that were deleted before are no longer.
 */
export interface PolicySentinel {
  /** Its policy, which refuses a ConfigMap of its own name, and the binding: to be written after the others. */
  readonly objects: readonly [policy: SentinelObject, binding: SentinelObject];
  write(cluster: Cluster): Promise<void>;
  /** Resolves when it refuses. */
  untilInForce(cluster: Cluster): Promise<void>;
}

interface SentinelObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: object;
}

const POLICIES = 'admissionregistration.k8s.io/v1';

/** A new one each time: that of an earlier call is in force before what is written now. */
export const policySentinel = (): PolicySentinel => {
  const name = `policies-in-force-${randomUUID()}`;
  const matched = { apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'], operations: ['CREATE'] };
  const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } };
  const attempt = { verb: 'create', path: '/api/v1/namespaces/default/configmaps', body } as const;
  const policy = {
    apiVersion: POLICIES,
    kind: 'ValidatingAdmissionPolicy',
    metadata: { name },
    spec: {
      matchConstraints: { resourceRules: [matched] },
      validations: [{ expression: `object.metadata.name != '${name}'`, reason: 'Forbidden' }],
    },
  };
  const binding = {
    apiVersion: POLICIES,
    kind: 'ValidatingAdmissionPolicyBinding',
    metadata: { name },
    spec: { policyName: name, validationActions: ['Deny'] },
  };
  return {
    objects: [policy, binding],
    async write({ transport }) {
      await transport.send({ method: 'POST', path: `/apis/${POLICIES}/validatingadmissionpolicies`, body: policy });
      await transport.send({
        method: 'POST',
        path: `/apis/${POLICIES}/validatingadmissionpolicybindings`,
        body: binding,
      });
    },
    untilInForce: async (cluster) =>
      void (await until('the policies are in force', () => tryWrite(cluster, attempt).then(() => false, isForbidden))),
  };
};
