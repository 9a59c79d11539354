import { AddressSet, parsePrefix, type Prefix } from '@unbounded/ip';
import { endpointKey, type L2Snapshot } from '@unbounded/l2';
import type { L2Objects } from './l2-source.ts';
import { portName } from './names.ts';

/** From the objects of the cluster to what a node plans its part of the networks from. */

/** What a node knows besides the objects. */
interface NodeView {
  readonly node: string;
  /** By node, as text. */
  readonly locators: ReadonlyMap<string, string>;
  /** Blocks to which links lead, as text. */
  readonly routed: readonly string[];
  /** Devices of ports that are there. */
  readonly ports: ReadonlySet<string>;
}

/** A block of IPv4 leads to no locator. */
const unreachedBy = (routed: readonly string[], locators: ReadonlyMap<string, Prefix>): ReadonlySet<string> => {
  const ways = AddressSet.of(routed.map(parsePrefix));
  return new Set([...locators].flatMap(([node, locator]) => (ways.covers(locator) ? [] : [node])));
};

export const l2SnapshotOf = (objects: L2Objects, { node, locators: texts, routed, ports }: NodeView): L2Snapshot => {
  const hosted = new Set(objects.endpoints.flatMap(({ spec }) => (spec.node === node ? [spec.network] : [])));
  const isHosted = ({ spec }: { readonly spec: { readonly network: string } }): boolean => hosted.has(spec.network);
  const endpoints = objects.endpoints.filter(isHosted);
  const locators = new Map([...texts].map(([name, text]): [string, Prefix] => [name, parsePrefix(text)]));
  const own = endpoints.filter(({ spec }) => spec.node === node).map(endpointKey);
  return {
    node,
    networks: objects.networks.filter(({ metadata }) => hosted.has(metadata.name)),
    endpoints,
    fdbEntries: objects.fdbEntries.filter(isHosted),
    neighbors: objects.neighbors.filter(isHosted),
    locators,
    unreached: unreachedBy(routed, locators),
    ports: new Map(own.map((key) => [key, portName(key)] as const).filter(([, device]) => ports.has(device))),
  };
};
