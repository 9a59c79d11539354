import { describe, expect, test } from 'vitest';
import { relayState } from './relay-state.ts';
import { relayUnit } from './relay-unit.ts';

const [OWN, PEER] = ['5ZqNUjYwTkSgDnjz9kVCoCjmVLGAXR3zR0O2jPuoL0o=', 'aaqNUjYwTkSgDnjz9kVCoCjmVLGAXR3zR0O2jPuoL0o='];
const peer = { publicKey: PEER, wireGuardPort: 51820 };
const identity = { publicKey: OWN, privateKeyFile: '/etc/wireguard/server.priv', peers: [peer] };
const way = { host: 'relay.example.com', port: 3478, isTls: false };
const service = { name: 'relay', ways: [way] };
const unit = { services: [service], identities: [identity] };
const read = (value: unknown) => relayUnit.parse(typeof value === 'string' ? value : JSON.stringify(value));
const withWay = (extra: object) => ({ ...unit, services: [{ ...service, ways: [{ ...way, ...extra }] }] });
const withIdentity = (extra: object) => ({ ...unit, identities: [{ ...identity, ...extra }] });

test('a unit is read as the agent wrote it', () => {
  expect(read(unit)).toEqual(unit);
  const full = withWay({ host: '2001:db8::1', isTls: true, serverName: 'relay.example.com' });
  expect(read(full)).toEqual(full);
  expect(read({ services: [], identities: [] })).toEqual({ services: [], identities: [] });
});

describe('a unit is refused, with the reason', () => {
  const bad: readonly [string, unknown, string][] = [
    ['a trust that is none', { ...unit, trust: { caBundle: 'x' } }, 'caBundle has 0 certificates'],
    [
      'a certificate that is none',
      { ...unit, trust: { caBundle: `-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----` } },
      'certificate 1 cannot be read',
    ],
    ['a static key that is none', { ...unit, trust: { staticKey: 'x' } }, 'must be a WireGuard key'],
    ['a host with a path', withWay({ host: '/var/run/relay.sock' }), 'must be an address or a DNS name'],
    ['an address with a prefix', withWay({ host: '192.0.2.1/32' }), 'must be an address or a DNS name'],
    ['an octet above 255', withWay({ host: '192.0.2.256' }), 'must be an address or a DNS name'],
    ['a host with a port', withWay({ host: 'relay:1' }), 'must be an address or a DNS name'],
    ['a host with a scheme', withWay({ host: 'relays://relay' }), 'must be an address or a DNS name'],
    ['port 0 of a relay', withWay({ port: 0 }), 'services[0].ways[0].port'],
    [
      'a port of WireGuard that is none',
      withIdentity({ peers: [{ ...peer, wireGuardPort: 70_000 }] }),
      'wireGuardPort',
    ],
    ['a service without ways', { ...unit, services: [{ ...service, ways: [] }] }, 'services[0].ways'],
    [
      'more ways than anybody has',
      { ...unit, services: [{ ...service, ways: Array.from({ length: 33 }, () => way) }] },
      'ways',
    ],
    ['a service twice', { ...unit, services: [service, service] }, 'has a name twice'],
    ['an identity twice', { ...unit, identities: [identity, identity] }, 'has an identity twice'],
    ['a peer twice', withIdentity({ peers: [peer, peer] }), 'has a peer twice'],
    ['a key that is none', withIdentity({ publicKey: 'x' }), 'must be a WireGuard key in base64'],
    ['a key file elsewhere', withIdentity({ privateKeyFile: '/etc/shadow' }), 'must be a file in /etc/wireguard'],
    ['a key file out of the folder', withIdentity({ privateKeyFile: '/etc/wireguard/../shadow' }), 'must be a file'],
    ['the folder above as a key file', withIdentity({ privateKeyFile: '/etc/wireguard/..' }), 'must be a file'],
    ['no JSON', '{"services":', 'JSON'],
    ['nothing', 'null', 'expected object'],
  ];
  test.each(bad)('%s', (_, value, reason) => expect(() => read(value)).toThrow(reason));
});

describe('the state', () => {
  const state = {
    proxies: [{ own: OWN, peer: PEER, wireGuardPort: 51820, port: 40_000 }],
    relays: [{ name: 'relay', connected: true }],
  };

  test.each([
    ['no JSON', '{"proxies":[', 'must be JSON'],
    [
      'a port that is none',
      JSON.stringify({ ...state, proxies: [{ ...state.proxies[0], port: 0 }] }),
      'proxies[0].port 0:',
    ],
    [
      'a peer that is no key',
      JSON.stringify({ ...state, proxies: [{ ...state.proxies[0], peer: 'x' }] }),
      'WireGuard key',
    ],
  ])('with %s is refused', (_, text, reason) => expect(() => relayState.parse(text)).toThrow(reason));

  test('is read as it was written', () => expect(relayState.parse(relayState.format(state))).toEqual(state));
});
