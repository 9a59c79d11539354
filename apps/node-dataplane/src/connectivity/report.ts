import { annotations, type AdvertisedRoute, NODE_FEATURES } from '@unbounded/crds';
import type { Problem } from '@unbounded/topology';
import { listed, type PathSummary } from './paths/moves.ts';
import type { NodeCondition, NodeEvent, SectionReport } from '../section.port.ts';

/** What peers need of the node, and what its operator should know of its connections to others. */

export interface ConnectivityState {
  readonly publicKey: string;
  readonly keyGeneration: number;
  readonly nextPublicKey: string | undefined;
  /** Undefined: the node's own network is not known; what was told last stands. */
  readonly tunnelMtuBytes: number | undefined;
  readonly protocols: readonly string[];
  /** It routes the nodes of all other networks: the feature node-cidrs. */
  readonly routesNodes: boolean;
  /** A plan has been applied: pods have a network. */
  readonly networkReady: boolean;
  readonly problems: readonly Problem[];
  /** Of peers that have a relay; undefined: there are none. */
  readonly paths: PathSummary | undefined;
  /** Moves between direct and relay since the last report, in words. */
  readonly moves: readonly string[];
  /** What others changed in the kernel and was put back since the last report. */
  readonly repairs: readonly NodeEvent[];
  /** Whether the node forwards, where that is known. */
  readonly forwarding: NodeCondition | undefined;
  /** Of a gateway: what lies behind it. */
  readonly routes: Readonly<Record<string, AdvertisedRoute>> | undefined;
}

/** Condition of a Node with peers that have a relay: True while packets to any of them go over it. */
const RELAYED = 'UnboundedRelayed';

const relayedOf = ({ paths }: ConnectivityState): NodeCondition[] => {
  if (!paths) return [];
  const { total, relayed } = paths;
  return relayed.length === 0
    ? [{ type: RELAYED, status: 'False', reason: 'Direct', message: `all of ${total} paths are direct` }]
    : [
        {
          type: RELAYED,
          status: 'True',
          reason: 'Relayed',
          message: `${relayed.length} of ${total} paths go over the relay: ${listed(relayed, ', ')}`,
        },
      ];
};

const networkOf = ({ networkReady }: ConnectivityState): NodeCondition =>
  networkReady
    ? {
        type: 'NetworkUnavailable',
        status: 'False',
        reason: 'NetworkReady',
        message: 'the first plan has been applied',
      }
    : {
        type: 'NetworkUnavailable',
        status: 'True',
        reason: 'NetworkNotReady',
        message: 'no plan has been applied yet',
      };

const annotationsOf = (state: ConnectivityState): Record<string, string | null> => ({
  [annotations.wireGuardPublicKey]: state.publicKey,
  [annotations.wireGuardKeyGeneration]: state.keyGeneration === 0 ? null : String(state.keyGeneration),
  [annotations.wireGuardNextPublicKey]: state.nextPublicKey ?? null,
  ...(state.tunnelMtuBytes === undefined ? {} : { [annotations.tunnelMtu]: String(state.tunnelMtuBytes) }),
  [annotations.tunnelProtocols]: state.protocols.join(','),
  [annotations.features]: NODE_FEATURES.filter((feature) => feature !== 'node-cidrs' || state.routesNodes).join(','),
});

const eventsOf = ({ moves, repairs }: ConnectivityState): NodeEvent[] => [
  ...repairs,
  ...(moves.length === 0
    ? []
    : [{ type: 'Normal', reason: 'PathMoved', action: 'ChoosePath', note: listed(moves, '; ') } as const]),
];

/** @param write of a gateway: its GatewayPoolNode */
export const connectivityReport = (
  state: ConnectivityState,
  write?: (routes: ConnectivityState['routes'], signal: AbortSignal) => Promise<void>,
): Omit<SectionReport, 'status' | 'forwarding'> => ({
  problems: state.problems,
  annotations: annotationsOf(state),
  conditions: [networkOf(state), ...relayedOf(state), ...(state.forwarding ? [state.forwarding] : [])],
  events: eventsOf(state),
  ...(write && { write: (signal: AbortSignal) => write(state.routes, signal) }),
});
