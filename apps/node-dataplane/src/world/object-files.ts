import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { nodeFacts, type NodeObject } from '@unbounded/membership';
import type { TopologyObjects } from '@unbounded/topology';
import { parseAllDocuments } from 'yaml';

/**
 * Objects from a folder of YAML or JSON files instead of an API server: for tests, and for nodes without a cluster. The
 * Node object of this node (kind Node) gives addresses and blocks.
 */

export interface NodeFacts {
  readonly internalIps: readonly string[];
  readonly externalIps: readonly string[];
  readonly podCidrs: readonly string[];
  /** The annotation that asks for a new WireGuard key. */
  readonly rotateKey?: string;
}

interface AnyObject {
  readonly kind?: string;
  readonly metadata?: { readonly name?: string; readonly annotations?: Readonly<Record<string, string>> };
}

const KIND_LISTS = {
  Site: 'sites',
  SiteNodeSlice: 'slices',
  GatewayPool: 'gatewayPools',
  SitePeering: 'sitePeerings',
  SiteGatewayPoolAssignment: 'assignments',
  GatewayPoolPeering: 'poolPeerings',
  Mesh: 'meshes',
} as const satisfies Record<string, keyof TopologyObjects>;

/** What the agent needs of its own Node, validated like every other Node's. */
export const nodeFactsOf = (node: NodeObject | undefined): NodeFacts => {
  if (!node) return { internalIps: [], externalIps: [], podCidrs: [] };
  const { internalIPs, externalIPs, podCIDRs, rotateKey } = nodeFacts(node);
  return {
    internalIps: internalIPs,
    externalIps: externalIPs,
    podCidrs: podCIDRs,
    ...(rotateKey === undefined ? {} : { rotateKey }),
  };
};

/** @throws Error naming the file that cannot be read */
export const readObjectFiles = (folder: string, nodeName: string): { objects: TopologyObjects; node: NodeFacts } => {
  const lists: Record<keyof TopologyObjects, unknown[]> = {
    sites: [],
    slices: [],
    gatewayPools: [],
    sitePeerings: [],
    assignments: [],
    poolPeerings: [],
    meshes: [],
  };
  let node: NodeObject | undefined;
  for (const name of readdirSync(folder)
    .filter((file) => /\.(ya?ml|json)$/.test(file))
    .sort()) {
    for (const document of parseAllDocuments(readFileSync(join(folder, name), 'utf8'))) {
      if (document.errors[0]) throw new Error(`${join(folder, name)}: ${document.errors[0].message}`);
      const object = document.toJS() as AnyObject | null;
      const list = KIND_LISTS[object?.kind as keyof typeof KIND_LISTS];
      if (list) lists[list].push(object);
      else if (object?.kind === 'Node' && object.metadata?.name === nodeName) node = object as NodeObject;
    }
  }
  return { objects: lists as unknown as TopologyObjects, node: nodeFactsOf(node) };
};
