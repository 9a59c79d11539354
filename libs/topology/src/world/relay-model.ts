import { type Mesh, MESH_NAME } from '@unbounded/crds';
import type { Problem } from './problem.ts';

/** The relay of `Mesh.spec.relay`: which peers may be reached by it, and how their paths are watched. */

/** How a peer that has a relay is reached. */
export interface RelayedPeer {
  /** auto: directly while probes of the direct path are answered; always: by the relay. */
  readonly mode: 'auto' | 'always';
  /** Between two probes of the direct path. */
  readonly intervalMs: number;
  /** Answered probes after which the direct path is taken, lost ones after which it is left: 1..255. */
  readonly detectMultiplier: number;
}

/** By what a node knows that a relay is the right one; it leaves any other. */
interface RelayTrust {
  /** PEM: authorities, instead of those that the node knows. With TLS alone. */
  readonly caBundle?: string;
  /** The relay's own public key, base64. */
  readonly staticKey?: string;
}

/** Where a node looks for relays. */
export type NodeRelay = RelayTrust &
  (
    | { readonly provider: 'external'; readonly endpoint: string; readonly transport: 'tcp' | 'tls' }
    /** With a server name it is reached by TLS, and its certificate must have that name. */
    | { readonly provider: 'managed'; readonly serverName?: string }
  );

export interface RelayModel {
  readonly peer: RelayedPeer;
  readonly node: NodeRelay;
}

const DEFAULT_PROBE = { intervalMilliseconds: 500, detectMultiplier: 3 } as const;

/** The relay that the objects name; undefined: none, or none is to be used. What is wrong is told, and then there is none. */
export const parseRelay = (meshes: readonly Mesh[], problems: Problem[]): RelayModel | undefined => {
  const spec = meshes.find(({ metadata }) => metadata.name === MESH_NAME)?.spec.relay;
  const mode = spec?.mode ?? 'auto';
  if (spec === undefined || mode === 'never') return undefined;
  const probe = { ...DEFAULT_PROBE, ...spec.pathProbe };
  const peer = { mode, intervalMs: probe.intervalMilliseconds, detectMultiplier: probe.detectMultiplier };
  const { caBundle, staticKey } = spec;
  const trust = { ...(caBundle === undefined ? {} : { caBundle }), ...(staticKey === undefined ? {} : { staticKey }) };
  if (spec.provider === 'managed') {
    const { serverName } = spec.managed?.tls ?? {};
    return { peer, node: { provider: 'managed', ...(serverName === undefined ? {} : { serverName }), ...trust } };
  }
  if (spec.external) {
    const { endpoint, transport = 'tcp' } = spec.external;
    return { peer, node: { provider: 'external', endpoint, transport, ...trust } };
  }
  const message = `Mesh ${MESH_NAME} spec.relay: provider "${spec.provider}" without its block: write external: {endpoint: "relay.example.com:3478"}, or provider: managed; no relay is used`;
  problems.push({ reason: 'InvalidRelay', message });
  return undefined;
};
