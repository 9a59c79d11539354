import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { KindTable, ObjectsOf } from '@unbounded/crds';
import { nodeFacts, type NodeObject } from '@unbounded/membership';
import { parseAllDocuments } from 'yaml';

/**
 * Objects from a folder of YAML or JSON files instead of an API server: for tests, and for nodes without a cluster. The
 * Node object of this node (kind Node) gives addresses and blocks.
 */

export interface NodeFacts {
  /** Absent: there is no Node, or it comes from a file that does not say it. */
  readonly uid?: string;
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

/** What the agent needs of its own Node, validated like every other Node's. */
export const nodeFactsOf = (node: NodeObject | undefined): NodeFacts => {
  if (!node) return { internalIps: [], externalIps: [], podCidrs: [] };
  const { uid, internalIPs, externalIPs, podCIDRs, rotateKey } = nodeFacts(node);
  return {
    ...(uid === '' ? {} : { uid }),
    internalIps: internalIPs,
    externalIps: externalIPs,
    podCidrs: podCIDRs,
    ...(rotateKey === undefined ? {} : { rotateKey }),
  };
};

/** @throws Error naming the file that cannot be read */
export const readObjectFiles = <T extends KindTable>(
  folder: string,
  kinds: T,
  nodeName: string,
): { objects: ObjectsOf<T>; node: NodeFacts } => {
  const lists = Object.fromEntries(Object.keys(kinds).map((name) => [name, new Array<AnyObject>()]));
  const listOf = new Map(Object.entries(kinds).map(([name, { kind }]) => [kind, lists[name]!]));
  let node: NodeObject | undefined;
  for (const name of readdirSync(folder)
    .filter((file) => /\.(ya?ml|json)$/.test(file))
    .sort()) {
    for (const document of parseAllDocuments(readFileSync(join(folder, name), 'utf8'))) {
      if (document.errors[0]) throw new Error(`${join(folder, name)}: ${document.errors[0].message}`);
      const object = document.toJS() as AnyObject | null;
      const list = listOf.get(object?.kind ?? '');
      if (object && list) list.push(object);
      else if (object?.kind === 'Node' && object.metadata?.name === nodeName) node = object as NodeObject;
    }
  }
  return { objects: lists as unknown as ObjectsOf<T>, node: nodeFactsOf(node) };
};
