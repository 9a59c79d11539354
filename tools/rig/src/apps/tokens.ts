import { join } from 'node:path';
import type { LabLayout } from '../layout/layout.ts';
import { controlPlaneDir, nodeDir } from '../machine/paths.ts';

/** ServiceAccount tokens that the lab's processes use, and where each is kept. */
export interface TokenSpec {
  readonly namespace: string;
  readonly serviceAccount: string;
  /** Node to which the token is bound. */
  readonly node?: string;
  /** For whom it is; absent: the API server. */
  readonly audience?: string;
  readonly file: string;
}

export const NAMESPACE = 'unbounded-system';
export const CONTROLLERS = [
  'cidr-allocator',
  'site-membership',
  'gateway-health',
  'static-egress',
  'l2-networks',
  'tailnet-registrar',
] as const;
/** Those that the lab runs. */
export const controllersOf = ({ options }: LabLayout): readonly (typeof CONTROLLERS)[number][] =>
  CONTROLLERS.filter(
    (app) => (app !== 'l2-networks' || options.lan) && (app !== 'tailnet-registrar' || options.tailnet),
  );
export const NODE_AGENT = 'node-dataplane';
export const AGGREGATOR = 'status-aggregator';
const STATUS_AUDIENCE = 'status-aggregator.net.unbounded-cloud.io';

export const controllerTokenFile = (app: string): string => join(controlPlaneDir, 'tokens', app);
export const TAILNET_AGENT = 'tailnet';
export const tailnetTokenFile = (node: string): string => join(nodeDir(node), 'tokens', TAILNET_AGENT);
export const agentTokenFile = (node: string): string => join(nodeDir(node), 'tokens', NODE_AGENT);

/** By which the aggregator knows the node. */
export const statusTokenFile = (node: string): string => join(nodeDir(node), 'tokens', 'status');

/** None where our apps are pods: their kubelets ask for their tokens. */
export const tokensOf = (layout: LabLayout): TokenSpec[] =>
  layout.options.agents === 'pods' ? [] : processTokens(layout);

const processTokens = (layout: LabLayout): TokenSpec[] => [
  ...[...controllersOf(layout), AGGREGATOR].map((app) => ({
    namespace: NAMESPACE,
    serviceAccount: app,
    file: controllerTokenFile(app),
  })),
  ...layout.nodes.flatMap(({ name: node }) => {
    const token = { namespace: NAMESPACE, serviceAccount: NODE_AGENT, node };
    return [
      { ...token, file: agentTokenFile(node) },
      { ...token, audience: STATUS_AUDIENCE, file: statusTokenFile(node) },
      ...(layout.options.tailnet ? [{ ...token, serviceAccount: TAILNET_AGENT, file: tailnetTokenFile(node) }] : []),
    ];
  }),
];
