import type { RelayUnit } from '@unbounded/keeper-protocol';
import type { RelayService, RelayTrust } from '@unbounded/relay-client';
import type { NeutralPlan } from '../../data-path/kernel-plan.ts';

/** What the agent asks of the relay's proxies, which node-keeper runs (see libs/keeper-protocol). */

export interface OwnKey {
  readonly publicKey: string;
  readonly file: string;
}

/** Of what a plan says of relays. */
export const trustOf = ({ caBundle, staticKey }: RelayTrust): RelayTrust => ({
  ...(caBundle === undefined ? {} : { caBundle }),
  ...(staticKey === undefined ? {} : { staticKey }),
});

const compare = (a: string, b: string): number => (a < b ? -1 : 1);

/**
 * An identity for each of the node's keys that is in use: others may know it by either while it exchanges its key. A peer
 * has one lane for each pair of keys, and so one port of WireGuard for each of ours.
 */
export const planRelayUnit = (
  plan: NeutralPlan,
  services: readonly RelayService[],
  keyOf: (generation: number) => OwnKey | undefined,
): RelayUnit => {
  const identities = new Map<string, { readonly key: OwnKey; readonly ports: Map<string, number> }>();
  for (const { keyGeneration = 0, listenPort, peers } of plan.wireGuard) {
    const key = keyOf(keyGeneration);
    const relayed = peers.filter(({ relay }) => relay !== undefined);
    if (!key || relayed.length === 0) continue;
    const { ports } = identities.get(key.publicKey) ?? { ports: new Map<string, number>() };
    for (const { publicKey } of relayed) ports.set(publicKey, listenPort);
    identities.set(key.publicKey, { key, ports });
  }
  // Without a relay there is nobody to trust; and one that is malformed, which leaves none, would make the keeper refuse the unit.
  const trust = plan.relay && services.length > 0 && trustOf(plan.relay);
  return {
    ...(trust && Object.keys(trust).length > 0 ? { trust } : {}),
    services,
    identities: [...identities.values()]
      .sort((a, b) => compare(a.key.publicKey, b.key.publicKey))
      .map(({ key, ports }) => ({
        publicKey: key.publicKey,
        privateKeyFile: key.file,
        peers: [...ports]
          .sort(([a], [b]) => compare(a, b))
          .map(([publicKey, wireGuardPort]) => ({ publicKey, wireGuardPort })),
      })),
  };
};
