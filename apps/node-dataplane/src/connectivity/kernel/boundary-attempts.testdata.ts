import { ECHO_PORTS } from '@unbounded/health';
import type { BoundaryLab, LabOptions, Shot } from './boundary-lab.testdata.ts';
import {
  addressOf,
  type Family,
  type Host,
  type Namespace,
  NODE_PORTS,
  type Place,
} from './boundary-network.testdata.ts';

/** What is tried at the boundary of the overlay, and what comes of it, by what the node is. */

export type Name = Host | 'ownPod' | 'ownEcho' | 'node' | 'external';

export interface Attempt extends Pick<Shot, 'type' | 'bytes' | 'port'> {
  readonly what: string;
  readonly from: Place;
  readonly source: Name;
  readonly to: Name;
}
export interface Refusal extends Attempt {
  readonly reason: 'unlisted_exit' | 'unlisted_entry' | 'forged_source' | 'no_route_back' | 'stray_echo';
}
export interface Passage extends Attempt {
  readonly arrives: Namespace;
}
/** Over TCP: whom the far end sees. */
export interface Question extends Attempt {
  readonly sees: Name | 'somebody else';
}

const far = { from: 'far', source: 'farPod' } as const;
const near = { from: 'lan', source: 'nearPod' } as const;
const lan = { from: 'lan', to: 'farPod' } as const;
const wan = { from: 'wan', to: 'farPod' } as const;

const isWorker = ({ role }: LabOptions): boolean => role === 'worker';
const isNative = ({ protocol }: LabOptions): boolean => protocol === 'None';
/** A worker without tunnels reaches other sites by its gateway, natively. */
const hasTunnels = (options: LabOptions): boolean => !(isWorker(options) && isNative(options));
const when = <T>(holds: boolean, rows: readonly T[]): readonly T[] => (holds ? rows : []);

const because = (reason: Refusal['reason'], how: string, attempts: readonly Attempt[]): Refusal[] =>
  attempts.map((one) => ({ ...one, what: `${how}: ${one.what}`, reason }));

const outOfTunnel = (options: LabOptions): Refusal[] =>
  because('unlisted_exit', 'out of a tunnel', [
    { what: 'to a metadata service', ...far, to: 'metadata' },
    { what: 'to a metadata service, over TCP', ...far, to: 'metadata', type: 'tcp' },
    { what: 'to the internet', ...far, to: 'internet' },
    { what: 'to the internet, in fragments', ...far, to: 'internet', bytes: 4000 },
    { what: 'with a node’s address to the internet', ...far, source: 'farNode', to: 'internet' },
    { what: 'with a near node’s address to a metadata service', ...far, source: 'nearNode', to: 'metadata' },
    ...when<Attempt>(isWorker(options), [
      { what: 'to the router of the LAN', ...far, to: 'router' },
      { what: 'to a node of the LAN', ...far, to: 'nearNode' },
      { what: 'to a host of the LAN, over TCP', ...far, to: 'stranger', type: 'tcp' },
      { what: 'to what the pool of gateways routes', ...far, to: 'routed' },
      { what: 'back into the overlay', ...far, to: 'fartherPod' },
    ]),
  ]);

const natively = (options: LabOptions): Refusal[] => [
  ...because('unlisted_exit', 'natively, with the source of another node’s pod', [
    { what: 'to a metadata service', ...near, to: 'metadata' },
    { what: 'to the internet', ...near, to: 'internet' },
    { what: 'to the internet, over TCP', ...near, to: 'internet', type: 'tcp' },
    ...when<Attempt>(isWorker(options), [
      { what: 'of another site, to the internet', ...near, source: 'farPod', to: 'internet' },
    ]),
  ]),
  ...because('no_route_back', 'natively, with the source of another node’s pod', [
    { what: 'by the WAN', ...near, from: 'wan', to: 'ownPod' },
  ]),
];

const intoTunnel = (options: LabOptions): Refusal[] =>
  because('unlisted_entry', 'into a tunnel', [
    { what: 'a host of the LAN, to a pod', ...lan, source: 'stranger' },
    { what: 'a host of the LAN, to a pod, over TCP', ...lan, source: 'stranger', type: 'tcp' },
    { what: 'a host of the LAN, in fragments', ...lan, source: 'stranger', bytes: 4000 },
    { what: 'a host of the LAN, to a node', ...lan, source: 'stranger', to: 'farNode' },
    { what: 'the router, to a node', ...lan, source: 'router', to: 'farNode' },
    { what: 'a host of the WAN', ...wan, source: 'internet' },
    { what: 'a host of the WAN, to a node, over TCP', ...wan, source: 'internet', to: 'farNode', type: 'tcp' },
    { what: 'in the name of a near node, from the WAN', ...wan, source: 'nearNode' },
    { what: 'in the name of a listed host, from the WAN', ...wan, source: 'listed' },
    { what: 'in the name of what the pool routes, from the WAN', ...wan, source: 'routed' },
    ...when<Attempt>(!isNative(options), [{ what: 'a node that has a tunnel, past it', ...lan, source: 'nearNode' }]),
    ...when<Attempt>(isWorker(options), [{ what: 'what the pool of gateways routes', ...lan, source: 'routed' }]),
  ]);

const livesInOverlay = (options: LabOptions): Refusal[] =>
  because('forged_source', 'from outside', [
    { what: 'a far pod’s address, from the LAN', from: 'lan', source: 'farPod', to: 'ownPod' },
    { what: 'a far node’s address, from the LAN', from: 'lan', source: 'farNode', to: 'ownPod' },
    { what: 'a far node’s address, over TCP', from: 'lan', source: 'farNode', to: 'ownPod', type: 'tcp' },
    { what: 'a far node’s address, in fragments', from: 'wan', source: 'farNode', to: 'ownPod', bytes: 4000 },
    { what: 'a far node’s address, to a pod behind a tunnel', from: 'wan', source: 'farNode', to: 'farPod' },
    { what: 'of this node’s own pod, from the LAN', from: 'lan', source: 'ownPod', to: 'farPod' },
    ...when<Attempt>(!isNative(options), [
      { what: 'a near pod’s address, from the LAN', from: 'lan', source: 'nearPod', to: 'ownPod' },
    ]),
  ]);

const toEchoes: readonly Refusal[] = because('stray_echo', 'to the address of echoes', [
  { what: 'out of a tunnel, of a far pod', ...far, to: 'ownEcho' },
  { what: 'out of a tunnel, of a far node', ...far, source: 'farNode', to: 'ownEcho' },
  { what: 'out of a tunnel, from itself to another port', from: 'far', source: 'ownEcho', to: 'ownEcho' },
  {
    ...{ what: 'out of a tunnel, from itself over TCP', from: 'far', source: 'ownEcho', to: 'ownEcho' },
    ...{ type: 'tcp', port: ECHO_PORTS.destination },
  },
  { what: 'of a pod of the node', from: 'pod', source: 'ownPod', to: 'ownEcho' },
  { what: 'of a pod of the node, over TCP', from: 'pod', source: 'ownPod', to: 'ownEcho', type: 'tcp' },
  { what: 'of a host of the LAN', from: 'lan', source: 'stranger', to: 'ownEcho' },
  { what: 'of a host of the WAN', from: 'wan', source: 'internet', to: 'ownEcho' },
]);

/** Not out of a tunnel: nobody beside the node may say that it is the node's echo. */
const forgedEchoes: readonly Refusal[] = because('forged_source', 'with the address of echoes', [
  { what: 'a host of the LAN', from: 'lan', source: 'ownEcho', to: 'ownEcho' },
  { what: 'a host of the WAN', from: 'wan', source: 'ownEcho', to: 'ownEcho' },
  { what: 'a host of the LAN, to a far pod', from: 'lan', source: 'ownEcho', to: 'farPod' },
]);

export const refusalsOf = (options: LabOptions): Refusal[] => [
  ...when(hasTunnels(options), [
    ...outOfTunnel(options),
    ...intoTunnel(options),
    ...livesInOverlay(options),
    ...toEchoes,
    ...forgedEchoes,
  ]),
  ...when(isNative(options), natively(options)),
];

const throughTunnels = (options: LabOptions): Passage[] => [
  { what: 'out of a tunnel to a pod of the node', ...far, to: 'ownPod', arrives: 'pod' },
  { what: 'out of a tunnel to the node', ...far, to: 'node', arrives: 'node' },
  { what: 'to a Service here, its pod on the node', ...far, to: 'node', port: NODE_PORTS.local, arrives: 'pod' },
  { what: 'to a Service here, its pod beyond', ...far, to: 'node', port: NODE_PORTS.far, arrives: 'far' },
  { what: 'into a tunnel: a host that the Site lists', ...lan, source: 'listed', arrives: 'far' },
  { what: 'into a tunnel: the same, to a node', ...lan, source: 'listed', to: 'farNode', arrives: 'far' },
  { what: 'an echo into the tunnel', from: 'echo', source: 'ownEcho', to: 'farPod', arrives: 'far' },
  {
    ...{ what: 'an echo that came back', from: 'far', source: 'ownEcho', to: 'ownEcho' },
    ...{ port: ECHO_PORTS.destination, arrives: 'echo' },
  },
  { what: 'into a tunnel: a pod of the node', from: 'pod', source: 'ownPod', to: 'farPod', arrives: 'far' },
  { what: 'a far node, past the overlay to the node', from: 'wan', source: 'farNode', to: 'node', arrives: 'node' },
  {
    ...{ what: 'a far node, past the overlay to a Service with policy Local', from: 'wan', source: 'farNode' },
    ...{ to: 'node', port: NODE_PORTS.local, arrives: 'pod' },
  },
  { what: 'a host of the LAN, to a pod of the node', from: 'lan', source: 'stranger', to: 'ownPod', arrives: 'pod' },
  // A gateway hands what is for a near node to the tunnel of that node, which is not here.
  ...when<Passage>(isWorker(options), [
    { what: 'to a Service here, on a near node', ...far, to: 'node', port: NODE_PORTS.near, arrives: 'lan' },
  ]),
  ...when<Passage>(!isWorker(options), [
    { what: 'out of a tunnel to a host among the nodes', ...far, to: 'stranger', arrives: 'lan' },
    { what: 'out of a tunnel to what the pool routes', ...far, to: 'routed', arrives: 'lan' },
    { what: 'out of a tunnel on to a further gateway', ...far, to: 'fartherPod', arrives: 'far' },
    { what: 'into a tunnel: what the pool routes', ...lan, source: 'routed', arrives: 'far' },
  ]),
];

export const passagesOf = (options: LabOptions): Passage[] => [
  ...when(hasTunnels(options), throughTunnels(options)),
  ...when<Passage>(isNative(options), [
    { what: 'natively to a pod of the node', ...near, to: 'ownPod', arrives: 'pod' },
    { what: 'natively to a Service here', ...near, to: 'node', port: NODE_PORTS.local, arrives: 'pod' },
  ]),
  ...when<Passage>(isNative(options) && hasTunnels(options), [
    { what: 'natively and into the overlay', ...near, to: 'farPod', arrives: 'far' },
    { what: 'out of a tunnel to a near pod, natively', ...far, to: 'nearPod', arrives: 'lan' },
    { what: 'into a tunnel: a node without a tunnel', ...lan, source: 'nearNode', arrives: 'far' },
  ]),
];

const client = { from: 'lan', source: 'stranger', port: NODE_PORTS.far } as const;

export const questionsOf = (options: LabOptions): Question[] => [
  { what: 'a pod asks the internet', from: 'pod', source: 'ownPod', to: 'internet', sees: 'external' },
  { what: 'a pod asks a host of the LAN', from: 'pod', source: 'ownPod', to: 'stranger', sees: 'node' },
  ...when<Question>(hasTunnels(options), [
    { what: 'a pod asks a far pod', from: 'pod', source: 'ownPod', to: 'farPod', sees: 'ownPod' },
    { what: 'a client of the LAN asks a Service', ...client, to: 'node', sees: 'somebody else' },
    {
      ...{ what: 'a client of the WAN asks a Service', ...client, from: 'wan', source: 'internet' },
      ...{ to: 'external', sees: 'somebody else' },
    },
    { what: 'a listed host asks a far pod', from: 'lan', source: 'listed', to: 'farPod', sees: 'listed' },
  ]),
  ...when<Question>(hasTunnels(options) && !isWorker(options), [
    { what: 'a far pod asks a host among the nodes', ...far, to: 'stranger', sees: 'node' },
    { what: 'a far pod asks what the pool routes', ...far, to: 'routed', sees: 'node' },
  ]),
];

export const placeOf = ({ own }: BoundaryLab, name: Name, family: Family): string => {
  if (name === 'ownPod' || name === 'ownEcho') return own[name === 'ownPod' ? 'pod' : 'echo'][family];
  return name === 'node' || name === 'external' ? own[name][family] : addressOf(name, family);
};
export const shotOf = (lab: BoundaryLab, attempt: Omit<Attempt, 'what'>, family: Family): Shot => ({
  ...attempt,
  source: placeOf(lab, attempt.source, family),
  to: placeOf(lab, attempt.to, family),
});
