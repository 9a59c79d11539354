import { expect, test } from 'vitest';
import { type OwnKey, planRelayUnit } from './relay-unit.plan.ts';
import { EXTERNAL, relayPlan } from './relay.testdata.ts';

const keys: readonly OwnKey[] = [
  { publicKey: 'own0', file: '/etc/wireguard/server.priv' },
  { publicKey: 'own1', file: '/etc/wireguard/server.next.priv' },
];
const keyOf = (generation: number) => keys[generation];
const services = [{ name: 'relay', ways: [{ host: '192.0.2.1', port: 3478, isTls: false }] }];

test('peers with a relay, each with the port of its interface; others stay out', () => {
  const plan = relayPlan(EXTERNAL, { listen: 51820, to: ['near', 'FAR2', 'FAR1'] }, { listen: 51821, to: ['GATEWAY'] });
  expect(planRelayUnit(plan, services, keyOf)).toEqual({
    services,
    identities: [
      {
        publicKey: 'own0',
        privateKeyFile: '/etc/wireguard/server.priv',
        peers: [
          { publicKey: 'FAR1', wireGuardPort: 51820 },
          { publicKey: 'FAR2', wireGuardPort: 51820 },
          { publicKey: 'GATEWAY', wireGuardPort: 51821 },
        ],
      },
    ],
  });
});

test('both keys of a node that exchanges its key, and of a peer that does', () => {
  const plan = relayPlan(
    EXTERNAL,
    { listen: 51820, to: ['A'] },
    { listen: 55220, to: ['ANEXT'] },
    { listen: 58620, generation: 1, to: ['A'] },
    { listen: 62020, generation: 1, to: ['ANEXT'] },
  );
  const peers = planRelayUnit(plan, services, keyOf).identities.map(({ publicKey, peers: own }) => [
    publicKey,
    ...own.map((peer) => `${peer.publicKey} ${peer.wireGuardPort}`),
  ]);
  expect(peers).toEqual([
    ['own0', 'A 51820', 'ANEXT 55220'],
    ['own1', 'A 58620', 'ANEXT 62020'],
  ]);
});

test('a key that is gone has no identity, nor one that no such peer knows', () => {
  const plan = relayPlan(EXTERNAL, { listen: 51820, to: ['near'] }, { listen: 58620, generation: 7, to: ['A'] });
  expect(planRelayUnit(plan, services, keyOf).identities).toEqual([]);
});
