import type { Source } from '@unbounded/controller-runtime';
import type { HostPart } from '@unbounded/host';
import { formatPrefix, type Prefix, tryParsePrefix } from '@unbounded/ip';
import { isForbidden, isNotFound, type ResourceClient, type ServiceCidr } from '@unbounded/kube';
import type { Logger } from '@unbounded/telemetry';

/** They change once in the life of a cluster; Services in a new one have addresses that count by themselves. */
const LOOK_MS = 30_000;
const RETRY_MS = 1000;

/** Ranges that the API server takes addresses of Services from; none before Kubernetes 1.33, which does not tell them. */
export const readServiceCidrs = async (
  client: Pick<ResourceClient<ServiceCidr>, 'listAll'>,
  signal?: AbortSignal,
): Promise<readonly Prefix[]> => {
  try {
    const objects = await client.listAll(signal ? { signal } : {});
    return objects.flatMap(({ spec }) => (spec?.cidrs ?? []).flatMap((text) => tryParsePrefix(text) ?? []));
  } catch (error) {
    if (isNotFound(error)) return [];
    throw error;
  }
};

export interface ServiceCidrs {
  /** Undefined until they have been read: a plan from before could give a Service's address away. */
  list(): readonly Prefix[] | undefined;
  /** Asks for a plan when they change. */
  readonly source: Source;
  /** Reads them again and again: a watch of a kind that is not served would never have begun. */
  readonly part: HostPart;
}

export interface ServiceCidrsOptions {
  readonly client: Pick<ResourceClient<ServiceCidr>, 'listAll'>;
  readonly key: string;
  readonly logger: Logger;
}

const textOf = (prefixes: readonly Prefix[] | undefined): string | undefined =>
  prefixes?.map(formatPrefix).toSorted().join();

export const createServiceCidrs = ({ client, key, logger }: ServiceCidrsOptions): ServiceCidrs => {
  let known: readonly Prefix[] | undefined;
  let tell: () => void = () => {};
  const ended = new AbortController();

  const update = (read: readonly Prefix[]): void => {
    const isNew = textOf(read) !== textOf(known);
    known = read;
    if (isNew) tell();
  };

  /** Milliseconds until the next look. */
  const look = async (): Promise<number> => {
    try {
      update(await readServiceCidrs(client, ended.signal));
      return LOOK_MS;
    } catch (error) {
      if (ended.signal.aborted) return 0;
      logger.warn({ err: error }, 'ServiceCIDRs cannot be read, blocks of Services are those known before and given');
      // Who may not read them has to give them; a server that does not answer will.
      if (isForbidden(error)) {
        update(known ?? []);
        return LOOK_MS;
      }
      return RETRY_MS;
    }
  };

  let timer: NodeJS.Timeout | undefined;
  const follow = async (): Promise<void> => {
    const delayMs = await look();
    if (!ended.signal.aborted) timer = setTimeout(() => void follow(), delayMs);
  };

  return {
    list: () => known,
    source: {
      connect: (enqueue) => {
        tell = () => enqueue(key);
      },
      keys: () => [],
    },
    part: {
      name: 'service cidrs',
      start: () => void follow(),
      stop: () => {
        ended.abort();
        clearTimeout(timer);
      },
    },
  };
};
