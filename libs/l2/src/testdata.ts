import { type FDBEntry, GROUP_VERSION, type Neighbor, type Network, type NetworkEndpoint } from '@unbounded/crds';
import { macText, parsePrefix, type Prefix } from '@unbounded/ip';
import { fdbEntryName, neighborName } from './entry-names.ts';
import { endpointKey, type L2Snapshot } from './snapshot.ts';

/** Networks for tests: nodes n1, n2, …, with the locators fd53:0:0:N::/64. */

const locatorOf = (node: string): Prefix => parsePrefix(`fd53:0:0:${node.slice(1)}::/64`);

export const network = (
  name: string,
  spec: Partial<Network['spec']> = {},
  status: Network['status'] = { number: 7, mtu: 1366 },
): Network => ({
  ...{ apiVersion: GROUP_VERSION, kind: 'Network', metadata: { name } },
  spec: { prefixes: ['192.0.2.0/24', '2001:db8::/64'], namespaceSelector: {}, ...spec },
  status,
});

/** Endpoint eN of network lan with 192.0.2.N, where there is such an address, 2001:db8::N and the MAC address 02:00:00:00:00:N. */
export const endpoint = (
  number: number,
  node: string,
  spec: Partial<NetworkEndpoint['spec']> = {},
): NetworkEndpoint => ({
  ...{ apiVersion: GROUP_VERSION, kind: 'NetworkEndpoint', metadata: { namespace: 'shop', name: `e${number}` } },
  spec: {
    ...{ network: 'lan', node, pod: `p${number}`, interface: 'net1' },
    mac: `02:00:00:00:${macText(Uint8Array.of(number >> 8, number & 0xff))}`,
    addresses: [...(number < 256 ? [`192.0.2.${number}`] : []), `2001:db8::${number.toString(16)}`],
    ...spec,
  },
});

export const fdbEntry = (
  of: NetworkEndpoint,
  spec: Partial<FDBEntry['spec']> = {},
  status: Partial<FDBEntry['status']> = {},
): FDBEntry => {
  const key = { network: of.spec.network, mac: of.spec.mac, source: 'static' as const, ...spec };
  return {
    ...{ apiVersion: GROUP_VERSION, kind: 'FDBEntry', metadata: { name: fdbEntryName(key.network, key.mac) } },
    spec: key,
    status: { endpoint: endpointKey(of), managingNode: of.spec.node, ...status },
  };
};

export const neighbor = (
  of: NetworkEndpoint,
  ip: string,
  status: Partial<NonNullable<Neighbor['status']>> = {},
): Neighbor => ({
  ...{ apiVersion: GROUP_VERSION, kind: 'Neighbor', metadata: { name: neighborName(of.spec.network, ip) } },
  spec: { network: of.spec.network, ip, source: 'static' },
  status: { endpoint: endpointKey(of), managingNode: of.spec.node, mac: of.spec.mac, ...status },
});

/** Everything that the nodes of the endpoints write, as one of them sees it. */
export const snapshotOf = (
  node: string,
  networks: readonly Network[],
  endpoints: readonly NetworkEndpoint[],
): L2Snapshot => ({
  ...{ node, networks, endpoints },
  fdbEntries: endpoints.map((one) => fdbEntry(one)),
  neighbors: endpoints.flatMap((one) => one.spec.addresses.map((ip) => neighbor(one, ip))),
  unreached: new Set(),
  locators: new Map([...new Set(endpoints.map(({ spec }) => spec.node))].map((name) => [name, locatorOf(name)])),
  ports: new Map(
    endpoints.flatMap((one) => (one.spec.node === node ? [[endpointKey(one), `l2-${one.metadata.name}`]] : [])),
  ),
});
