import { parsePrefix, type Prefix } from '@unbounded/ip';
import { endpointKey, type L2Snapshot } from '@unbounded/l2';
import type { L2Objects } from './l2-source.ts';
import { portName } from './names.ts';

/** From the objects of the cluster to what a node plans its part of the networks from. */

/** What a node knows besides the objects. */
interface NodeView {
  readonly node: string;
  /** By node, as text. */
  readonly locators: ReadonlyMap<string, string>;
  /** Devices of ports that are there. */
  readonly ports: ReadonlySet<string>;
}

export const l2SnapshotOf = (objects: L2Objects, { node, locators, ports }: NodeView): L2Snapshot => {
  const hosted = new Set(objects.endpoints.flatMap(({ spec }) => (spec.node === node ? [spec.network] : [])));
  const isHosted = ({ spec }: { readonly spec: { readonly network: string } }): boolean => hosted.has(spec.network);
  const endpoints = objects.endpoints.filter(isHosted);
  const own = endpoints.filter(({ spec }) => spec.node === node).map(endpointKey);
  return {
    node,
    networks: objects.networks.filter(({ metadata }) => hosted.has(metadata.name)),
    endpoints,
    fdbEntries: objects.fdbEntries.filter(isHosted),
    neighbors: objects.neighbors.filter(isHosted),
    locators: new Map([...locators].map(([name, text]): [string, Prefix] => [name, parsePrefix(text)])),
    ports: new Map(own.map((key) => [key, portName(key)] as const).filter(([, device]) => ports.has(device))),
  };
};
