import type { NodeRelay } from '@unbounded/topology';
import type { NeutralPlan } from '../../data-path/kernel-plan.ts';

/** A plan of which only what concerns the relay counts, for the tests. */

/** `listen`: port; `generation`: of our own key; `to`: peers, those with a relay in capitals. */
interface Lane {
  readonly listen: number;
  readonly generation?: number;
  readonly to: readonly string[];
}

const relayed = { mode: 'auto', intervalMs: 500, detectMultiplier: 3 } as const;

export const relayPlan = (relay: NodeRelay | undefined, ...lanes: readonly Lane[]): NeutralPlan =>
  ({
    ...(relay && { relay }),
    wireGuard: lanes.map(({ listen, generation, to }) => ({
      name: `wg${listen}`,
      listenPort: listen,
      mtuBytes: 1420,
      ...(generation === undefined ? {} : { keyGeneration: generation }),
      peers: to.map((peer) => ({
        node: peer.toLowerCase(),
        publicKey: peer,
        allowedIps: [],
        ...(peer === peer.toUpperCase() ? { relay: relayed } : {}),
      })),
    })),
  }) as unknown as NeutralPlan;

export const EXTERNAL = { provider: 'external', endpoint: 'relay.example.com:3478', transport: 'tcp' } as const;
