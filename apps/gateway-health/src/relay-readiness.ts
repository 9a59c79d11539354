import type { Node } from '@unbounded/kube';
import { createDamper, type Damper } from '@unbounded/membership';

/** What says where a node port is reached; changes with nothing else. */
export const relayNodeFingerprint = ({ status }: Node): string =>
  status?.conditions?.find(({ type }) => type === 'Ready')?.status ?? '';

/**
 * Which nodes are ready decides about the order of the relay's endpoints, so about the Mesh, which all agents read: a kubelet that
 * changes it to and fro changes them no more often than its Node's other facts.
 * @param elapsed milliseconds on a clock that only goes forward
 */
export const createReadiness = (elapsed: () => number): Damper<Node> =>
  createDamper<Node>({
    elapsed,
    identityOf: ({ metadata: { name, uid = '' } }) => ({ name, uid }),
    hold: (accepted, stated) => ({
      ...stated,
      status: { ...stated.status, conditions: accepted.status?.conditions ?? [] },
    }),
    isSame: (a, b) => relayNodeFingerprint(a) === relayNodeFingerprint(b),
    hasKey: () => true,
  });
