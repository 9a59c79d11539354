import { type Mesh, MESH_NAME } from '@unbounded/crds';
import type { NewCondition } from '@unbounded/kube';

import { MOST_KEYS } from './relay-keys.plan.ts';
import { managedRelay } from './relay.plan.ts';

/** What there is of the managed relay. */
export interface RelaySeen {
  /** Objects under our names that somebody else made: kind and name. */
  readonly foreign: readonly string[];
  /** Those of them without which it works: it has none of its own then. */
  readonly leftAlone?: readonly string[];
  /** Writes that the API server refused: kind and name, and what it said. */
  readonly refused?: readonly string[];
  /** Why none can be run. */
  readonly obstacle?: string;
  /** Where nodes outside find it, best first. */
  readonly endpoints: readonly string[];
  readonly availableReplicas: number;
  /** Keys of nodes that do not fit the list of those that are served. */
  readonly omittedKeys?: number;
}

const TYPE = 'RelayReady';
/** The API server's answer may be long: it quotes what it refuses. */
const LONGEST_ANSWER = 500;

const verdictOf = (
  mesh: Mesh,
  { foreign, leftAlone = [], refused = [], obstacle, endpoints, availableReplicas, omittedKeys = 0 }: RelaySeen,
): Omit<NewCondition, 'type'> => {
  const { replicas = 1, serviceType = 'LoadBalancer' } = managedRelay(mesh)!;
  const bad = (reason: string, message: string) => ({ status: 'False', reason, message }) as const;
  if (foreign.length > 0)
    return bad(
      'NameConflict',
      `${foreign.join(', ')} was made by somebody else and is left alone: remove it (chart: relay.enabled=false), or say provider: external`,
    );
  if (obstacle !== undefined) return bad('NoImage', obstacle);
  const aside = leftAlone.length > 0 ? `; ${leftAlone.join(', ')}: somebody else's, and left alone` : '';
  const running = `${availableReplicas} of ${replicas} replicas are available${aside}`;
  if (refused.length > 0)
    return bad(
      'Refused',
      `the API server refuses what the relay needs, ${refused.map((answer) => answer.slice(0, LONGEST_ANSWER)).join('; ')}: correct the policy, webhook or quota, or what was changed in the object; ${running}`,
    );
  if (omittedKeys > 0)
    return bad(
      'TooManyKeys',
      `${omittedKeys} keys of nodes do not fit the list of ${MOST_KEYS} that relays serve: those nodes are turned away; provider: external with relays of your own has no such limit`,
    );
  if (availableReplicas === 0) return bad('NotAvailable', `${running}: see the Deployment "relay" and its pods`);
  if (endpoints.length === 0)
    return bad(
      'NoAddress',
      serviceType === 'NodePort'
        ? `${running}, but no gateway has an external address (ExternalIP of its Node, or the annotation net.unbounded-cloud.io/external-address) at which nodes outside would find the node port`
        : `${running}, but the load balancer of the Service "relay" has no address yet; externalIPs or serviceType: NodePort do without one`,
    );
  return { status: 'True', reason: 'Available', message: `at ${endpoints.slice(0, 3).join(', ')}; ${running}` };
};

/** Of a relay that is not ours to run there is nothing to say, but that must be said where something was said before. */
const notOurs = ({ spec, status }: Mesh): Omit<NewCondition, 'type'> | undefined => {
  const unknown = (reason: string, message: string) => ({ status: 'Unknown', reason, message }) as const;
  if (spec.relay?.mode === 'never') return unknown('Never', 'mode: never, so none runs');
  if (spec.relay)
    return unknown(
      'External',
      'external relay, not run here: nodes that cannot reach it report UnboundedNetworkDegraded, RelayUnavailable',
    );
  return status?.conditions?.some(({ type }) => type === TYPE)
    ? unknown('NoRelay', 'the Mesh has no relay')
    : undefined;
};

/** The conditions of a Mesh; none where there never was a relay. */
export const planRelayConditions = (mesh: Mesh, seen: RelaySeen | undefined): NewCondition[] => {
  const observed = mesh.metadata.generation === undefined ? {} : { observedGeneration: mesh.metadata.generation };
  if (mesh.metadata.name !== MESH_NAME) {
    const message = `only the Mesh named "${MESH_NAME}" counts`;
    return [{ type: TYPE, status: 'False', reason: 'Ignored', message, ...observed }];
  }
  const verdict = seen === undefined ? notOurs(mesh) : verdictOf(mesh, seen);
  return verdict === undefined ? [] : [{ type: TYPE, ...verdict, ...observed }];
};
