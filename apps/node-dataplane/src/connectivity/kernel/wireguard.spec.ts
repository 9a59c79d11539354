import { findMember, parseWorld, planNode } from '@unbounded/topology';
import { diffDevice, encodeChange, generatePrivateKey } from '@unbounded/wireguard';
import { expect, test } from 'vitest';
import { objectsFor, planFor } from '../../testdata.ts';
import { usablePeers } from './wireguard.ts';

const EMPTY = { listenPort: 0, fwmark: 0, peers: [] };
const privateKey = generatePrivateKey();

const device = planFor('w1', 'WireGuard').wireGuard.find(({ peers }) => peers.some(({ node }) => node === 'x1'));
const [good] = device!.peers;

/** What the kernel is sent for the peers. */
const encode = (peers: ReturnType<typeof usablePeers>['peers']): Uint8Array[] =>
  encodeChange('wg51820', diffDevice(EMPTY, { privateKey, listenPort: 51820, peers })!);

test.each([
  ['a key that is none', { publicKey: 'x' }],
  ['no key at all', { publicKey: '' }],
  ['an endpoint that is none', { endpoint: 'gateway.example.com:51820' }],
  ['a port of an endpoint that is none', { endpoint: '192.0.2.1:0' }],
  ['an allowed address that is none', { allowedIps: ['100.65.31.0/24', '100.65.31.0'] }],
  ['a keepalive that is none', { persistentKeepaliveSeconds: 70_000 }],
])('a peer with %s is left out and reported, and the others are encoded', (_, changes) => {
  const bad = { ...good!, node: 'evil', publicKey: `A${good!.publicKey.slice(1)}`, ...changes };
  const { peers, problems } = usablePeers({ ...device!, peers: [bad, good!] }, () => undefined);
  expect(peers.map(({ publicKey }) => publicKey)).toEqual([good!.publicKey]);
  expect(problems.map(({ reason }) => reason)).toEqual(['InvalidPeer']);
  expect(problems[0]!.message).toContain('peer evil is left out');
  expect(encode(peers)).toEqual(encode(usablePeers({ ...device!, peers: [good!] }, () => undefined).peers));
});

test('a node whose annotation holds no key changes nothing of what the kernel is sent for the others', () => {
  const objects = objectsFor('WireGuard');
  const [first] = objects.slices;
  const evil = { name: 'evil', wireGuardPublicKey: 'x', internalIPs: ['10.1.0.66'], podCIDRs: ['100.65.66.0/24'] };
  const world = parseWorld({ ...objects, slices: [{ ...first!, nodes: [...first!.nodes!, evil] }] });
  const plan = planNode(world, { member: findMember(world, 'w1')!, underlayMtuBytes: 1500 });
  expect(plan.wireGuard).toEqual(planFor('w1', 'WireGuard').wireGuard);
  for (const own of plan.wireGuard) {
    const { peers, problems } = usablePeers(own, () => undefined);
    expect(problems).toEqual([]);
    expect(() => encode(peers)).not.toThrow();
  }
});
