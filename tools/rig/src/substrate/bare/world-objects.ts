import {
  FIRST_GATEWAY_WIREGUARD_PORT,
  type Gateway,
  GROUP_VERSION,
  NODE_FEATURES,
  type SiteNode,
} from '@unbounded/crds';
import { PLANS } from '../../layout/addresses.ts';
import type { LabLayout, LabNode } from '../../layout/layout.ts';
import { poolName, siteObjects } from '../site-objects.ts';

/**
 * What a cluster would hold for the layout, for agents that read objects from files: the objects that a person applies,
 * and those that our controllers make of them and of what the agents report.
 */

/** What an agent says of its node. */
interface NodeReport {
  readonly publicKey: string;
  /** Tunnel protocols that its kernel can do. */
  readonly protocols: readonly string[];
}

export type Reports = ReadonlyMap<string, NodeReport>;

const podCidrs = (layout: LabLayout, node: LabNode): string[] => {
  const index = layout.sites.findIndex(({ name }) => name === node.site);
  const number = layout.sites[index]!.nodes.indexOf(node);
  return layout.families.map((family) => PLANS[family].podBlock(index + 1, number));
};

/** A node's external addresses as the cloud provider tells them; of gateways only. */
const externalIps = ({ role, external }: LabNode): readonly string[] =>
  role === 'gateway' ? (external?.ips ?? []) : [];

const nodeObject = (layout: LabLayout, node: LabNode): object => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name: node.name },
  spec: { podCIDRs: podCidrs(layout, node) },
  status: {
    addresses: [
      ...node.internalIps.map((address) => ({ type: 'InternalIP', address })),
      ...externalIps(node).map((address) => ({ type: 'ExternalIP', address })),
    ],
  },
});

const listed = (layout: LabLayout, node: LabNode, { publicKey, protocols }: NodeReport): SiteNode => ({
  name: node.name,
  wireGuardPublicKey: publicKey,
  internalIPs: [...node.internalIps],
  podCIDRs: podCidrs(layout, node),
  tunnelProtocols: [...protocols],
});

/** Every gateway with a port of its own. */
const gatewaysOf = (layout: LabLayout, site: string, reports: Reports): Gateway[] =>
  layout.nodes
    .filter(({ role }) => role === 'gateway')
    .flatMap((node, index) => {
      const report = reports.get(node.name);
      if (node.site !== site || !report) return [];
      const { wireGuardPublicKey = '', ...facts } = listed(layout, node, report);
      const gatewayWireguardPort = FIRST_GATEWAY_WIREGUARD_PORT + index;
      return [
        {
          ...facts,
          wireGuardPublicKey,
          siteName: site,
          externalIPs: [...externalIps(node)],
          gatewayWireguardPort,
          features: [...NODE_FEATURES],
        },
      ];
    });

type Applied = { readonly kind: string; readonly metadata: { readonly name: string } };

/** Members of pools are in no slice. */
const slicesOf = (layout: LabLayout, members: ReadonlySet<string>, reports: Reports): object[] =>
  layout.sites.map(({ name, nodes }) => {
    const rest = nodes.flatMap((node) => {
      const report = reports.get(node.name);
      return report && !members.has(node.name) ? [listed(layout, node, report)] : [];
    });
    const metadata = { name: `${name}-0` };
    const slice = { siteName: name, sliceIndex: 0, nodeCount: rest.length, nodes: rest };
    return { apiVersion: GROUP_VERSION, kind: 'SiteNodeSlice', metadata, ...slice };
  });

/** Nodes that have not reported are in no slice and no pool yet. */
export const worldObjects = (layout: LabLayout, reports: Reports): object[] => {
  const applied = siteObjects(layout) as Applied[];
  const pools = new Map(
    layout.sites.flatMap(({ name }) =>
      applied.some(({ kind, metadata }) => kind === 'GatewayPool' && metadata.name === poolName(name))
        ? [[poolName(name), gatewaysOf(layout, name, reports)] as const]
        : [],
    ),
  );
  const members = new Set([...pools.values()].flat().map(({ name }) => name));
  return [
    ...layout.nodes.map((node) => nodeObject(layout, node)),
    ...applied.map((object) => {
      const nodes = object.kind === 'GatewayPool' ? pools.get(object.metadata.name) : undefined;
      return nodes ? { ...object, status: { nodes, nodeCount: nodes.length } } : object;
    }),
    ...slicesOf(layout, members, reports),
  ];
};
