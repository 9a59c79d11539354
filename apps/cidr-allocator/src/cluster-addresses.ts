import { formatAddress, hostPrefix, tryParseAddress, tryParsePrefix, type Address, type Prefix } from '@unbounded/ip';
import {
  ApiError,
  type EndpointSlice,
  isNotFound,
  type ResourceClient,
  type Service,
  type ServiceCidr,
} from '@unbounded/kube';
import type { Logger } from '@unbounded/telemetry';

import type { ClusterAddresses } from './underlay.plan.ts';

export interface ClusterAddressesOptions {
  readonly endpointSlices: ResourceClient<EndpointSlice>;
  readonly services: ResourceClient<Service>;
  readonly serviceCidrs: ResourceClient<ServiceCidr>;
  /** Ranges of Services that the operator gave, for servers that do not tell them. */
  readonly given: readonly Prefix[];
  readonly logger: Logger;
  /** Monotonic, milliseconds. */
  readonly now?: () => number;
}

/** What was read counts this long. */
export const MAX_AGE_MS = 30_000;
const OWN_SERVICE = { name: 'kubernetes', namespace: 'default' } as const;

interface Known {
  readonly apiServers: readonly Address[];
  readonly cidrs: readonly Prefix[];
  readonly own: readonly Prefix[];
}

const addressesOf = (texts: readonly string[]): readonly Address[] =>
  texts.flatMap((text) => tryParseAddress(text) ?? []);

/**
 * Addresses of API servers (EndpointSlice `default/kubernetes`) and of Services: ServiceCIDRs where they are served, the
 * address of the Service `default/kubernetes`, and what the operator gave. What cannot be read stays as it was.
 *
 * What the result does rejects with ApiError before everything was read once: a block that is given stands for good.
 */
export const createClusterAddresses = ({
  endpointSlices,
  services,
  serviceCidrs,
  given,
  logger,
  now = () => performance.now(),
}: ClusterAddressesOptions): ((signal: AbortSignal) => Promise<ClusterAddresses>) => {
  let known: Known | undefined;
  let readMs = -Infinity;

  const read = async <T>(
    what: string,
    fetch: () => Promise<readonly T[]>,
    before: readonly T[] | undefined,
  ): Promise<readonly T[]> => {
    try {
      return await fetch();
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      // Before Kubernetes 1.33 there are no ServiceCIDRs, and not every API server keeps an EndpointSlice of itself.
      if (isNotFound(error)) return before ?? [];
      if (before === undefined) throw error;
      logger.warn({ what, err: error }, 'cannot be read, blocks are checked with what was read before');
      return before;
    }
  };

  return async (signal) => {
    if (known === undefined || now() - readMs >= MAX_AGE_MS) {
      const at = { namespace: OWN_SERVICE.namespace, signal };
      known = {
        apiServers: await read(
          'API servers',
          async () =>
            addressesOf(
              ((await endpointSlices.get(OWN_SERVICE.name, at)).endpoints ?? []).flatMap(({ addresses }) => addresses),
            ),
          known?.apiServers,
        ),
        own: await read(
          'the Service of the API server',
          async () => addressesOf((await services.get(OWN_SERVICE.name, at)).spec?.clusterIPs ?? []).map(hostPrefix),
          known?.own,
        ),
        cidrs: await read(
          'ServiceCIDRs',
          async () =>
            (await serviceCidrs.listAll({ signal })).flatMap(({ spec }) =>
              (spec?.cidrs ?? []).flatMap((text) => tryParsePrefix(text) ?? []),
            ),
          known?.cidrs,
        ),
      };
      readMs = now();
      logger.debug({ apiServers: known.apiServers.map(formatAddress) }, 'addresses of the cluster');
    }
    return { apiServers: known.apiServers, services: [...known.cidrs, ...known.own, ...given] };
  };
};
