import { isIP } from 'node:net';
import {
  checkTrust,
  type Endpoint,
  externalServices,
  ManagedDiscovery,
  type ManagedRelay,
  type RelayService,
} from '@unbounded/relay-client';
import type { Logger } from '@unbounded/telemetry';
import type { NodeRelay, Problem } from '@unbounded/topology';
import type { StateFile } from '../../state/state-file.ts';

/** Where the relays are that a plan speaks of. */

/** The way to the managed relay that was found last; it serves a node that starts without the API server. */
export type FoundRelays = readonly RelayService[];

export const isFoundRelays = (value: unknown): value is FoundRelays =>
  Array.isArray(value) && value.every((each) => typeof each === 'object' && each !== null && 'ways' in each);

/** Where the managed relay is found. */
export interface ManagedRelaySource {
  /** What leads to it; may reject. */
  readonly read: () => Promise<ManagedRelay>;
  /** Tells when that may be another thing, until what it returns is called. */
  readonly watch: (onChange: () => void) => () => void;
}

export interface RelayServicesOptions {
  /** undefined: there is no API server to ask. */
  readonly managed: ManagedRelaySource | undefined;
  readonly foundFile: StateFile<FoundRelays>;
  readonly logger: Logger;
  /** What `of` says may be another. */
  readonly onChange: () => void;
}

export interface RelayServices {
  /** None, with a problem, while there is no way to any. Of a managed relay it begins to look for it. */
  of(relay: NodeRelay): { readonly services: readonly RelayService[]; readonly problems: readonly Problem[] };
  /** Ways by addresses to the managed relay, where the plan's is that and has been found: of a name kube-proxy knows nothing. */
  waysOf(relay: NodeRelay | undefined): readonly Endpoint[];
  /** No relay is wanted (any more). */
  stop(): void;
}

const external = ({ endpoint, transport }: NodeRelay & { readonly provider: 'external' }) => {
  try {
    return { services: externalServices([transport === 'tls' ? `relays://${endpoint}` : endpoint]), problems: [] };
  } catch (error) {
    const message = `Mesh default spec.relay.external.endpoint: ${(error as Error).message}`;
    return { services: [], problems: [{ reason: 'InvalidRelay', message }] };
  }
};

const NOT_FOUND: Problem = {
  reason: 'RelayNotFound',
  message:
    'no address of the managed relay is known yet: its Service "relay" needs external IPs, an address of a load balancer, or a node port and a gateway with an external address',
};

/** As the Mesh says now, and not as when it was found: never plainly where TLS is asked for. */
const reachedBy = (services: FoundRelays, serverName: string | undefined): FoundRelays =>
  services.map((service) => ({
    ...service,
    ways: service.ways.map(({ host, port }) =>
      serverName === undefined ? { host, port, isTls: false } : { host, port, isTls: true, serverName },
    ),
  }));

/** Nothing is used when it is wrong: with less than was asked for a relay would be trusted that should not be. */
const problemOfTrust = (relay: NodeRelay): Problem | undefined => {
  try {
    checkTrust(relay);
    return undefined;
  } catch (error) {
    return { reason: 'InvalidRelay', message: `Mesh default spec.relay.${(error as Error).message}; no relay is used` };
  }
};

export const createRelayServices = ({ managed, foundFile, logger, onChange }: RelayServicesOptions): RelayServices => {
  let stopLooking: (() => void) | undefined;
  let found: FoundRelays = foundFile.read() ?? [];
  const look = ({ read, watch }: ManagedRelaySource): (() => void) => {
    const onServices = (services: readonly RelayService[]): void => {
      const ways = services.flatMap((service) => service.ways.map(({ host, port }) => `${host} ${port}`));
      logger.info({ ways }, 'found the managed relay');
      found = services;
      foundFile.write(services);
      onChange();
    };
    const discovery = new ManagedDiscovery({ read, onServices, logger });
    discovery.start();
    const unwatch = watch(() => discovery.lookAgain());
    return () => {
      unwatch();
      discovery.stop();
    };
  };
  const stop = (): void => {
    stopLooking?.();
    stopLooking = undefined;
  };
  return {
    of(relay) {
      const problem = problemOfTrust(relay);
      if (problem) {
        stop();
        return { services: [], problems: [problem] };
      }
      if (relay.provider === 'external') {
        stop();
        return external(relay);
      }
      if (managed) stopLooking ??= look(managed);
      return { services: reachedBy(found, relay.serverName), problems: found.length === 0 ? [NOT_FOUND] : [] };
    },
    waysOf: (relay) =>
      relay?.provider === 'managed' ? found.flatMap(({ ways }) => ways.filter(({ host }) => isIP(host) !== 0)) : [],
    stop,
  };
};
