import type { NetworkEndpoint } from '@unbounded/crds';
import { formatAddress } from '@unbounded/ip';
import { endpointKey, type L2Plan } from '@unbounded/l2';
import { portName } from './names.ts';

/** Whether the kernel has all that an endpoint of this node is known by, and who waits for that. */

export const isInPlan = ({ networks, ports, fdb, neighbors }: L2Plan, endpoint: NetworkEndpoint): boolean => {
  const { network, mac, addresses } = endpoint.spec;
  const number = networks.find(({ name }) => name === network)?.number;
  const device = portName(endpointKey(endpoint));
  const known = new Set(
    neighbors.flatMap((one) => (one.network === number && one.mac === mac ? [formatAddress(one.ip)] : [])),
  );
  return (
    number !== undefined &&
    ports.some((port) => port.device === device) &&
    fdb.some((station) => station.network === number && station.mac === mac && 'device' in station.to) &&
    addresses.every((address) => known.has(address))
  );
};

export interface Turns {
  /** A pass has come to its end. */
  done(): void;
  /** Resolves behind the pass after which the condition holds. @throws the reason of the signal */
  until(condition: () => boolean, signal: AbortSignal): Promise<void>;
}

export const createTurns = (): Turns => {
  let waiting: (() => void)[] = [];
  return {
    done() {
      const told = waiting;
      waiting = [];
      for (const tell of told) tell();
    },
    async until(condition, signal) {
      while (!condition()) {
        signal.throwIfAborted();
        await new Promise<void>((resolve) => {
          waiting.push(resolve);
          signal.addEventListener('abort', () => resolve(), { once: true });
        });
      }
    },
  };
};
