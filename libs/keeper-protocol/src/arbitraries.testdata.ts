import fc from 'fast-check';
import type { DeviceState } from './device-state.ts';
import type { DeviceUnit } from './device-unit.ts';
import type { KeeperProcesses } from './keeper-processes.ts';
import type { RelayState } from './relay-state.ts';
import type { RelayTallies } from './relay-tallies.ts';
import type { RelayUnit } from './relay-unit.ts';
import type { TunnelUnit } from './tunnel-unit.ts';

/** Any valid content of each file. */

const key = fc.uint8Array({ minLength: 32, maxLength: 32 }).map((bytes) => Buffer.from(bytes).toString('base64'));
const port = fc.integer({ min: 1, max: 65_535 });
const keyFile = fc.stringMatching(/^[.-]{0,3}\w[\w.-]{0,36}$/).map((name) => `/etc/wireguard/${name}`);
const address = fc.oneof(fc.ipV4(), fc.ipV6());
const endpoint = fc
  .tuple(address, port)
  .map(([at, number]) => (at.includes(':') ? `[${at}]:${number}` : `${at}:${number}`));
const prefix = fc.oneof(
  fc.tuple(fc.ipV4(), fc.constant(32)).map(([at, bits]) => `${at}/${bits}`),
  fc.integer({ min: 0, max: 255 }).map((octet) => `100.64.${octet}.0/24`),
  fc.constantFrom('0.0.0.0/0', '::/0', '2001:db8::/32'),
);

export const tunnelUnits: fc.Arbitrary<TunnelUnit> = fc.record({
  device: fc.integer({ min: 0, max: 99_999 }).map((number) => `wg${number}`),
  privateKeyFile: keyFile,
  listenPort: port,
  peers: fc.array(
    fc.record(
      {
        publicKey: key,
        allowedIps: fc.array(prefix, { maxLength: 4 }),
        endpoint,
        persistentKeepaliveSeconds: fc.integer({ min: 0, max: 65_535 }),
      },
      { requiredKeys: ['publicKey', 'allowedIps'] },
    ),
    { maxLength: 6 },
  ),
});

const host = fc.oneof(fc.ipV4(), fc.constantFrom('2001:db8::1', 'relay.example.com', 'relay'));
const way = fc.record(
  { host, port, isTls: fc.boolean(), serverName: host },
  { requiredKeys: ['host', 'port', 'isTls'] },
);
const service = fc.record(
  {
    name: fc.string({ minLength: 1, maxLength: 60 }),
    ways: fc.array(way, { minLength: 1, maxLength: 3 }),
    isBalanced: fc.boolean(),
  },
  { requiredKeys: ['name', 'ways'] },
);
const identity = fc.record({
  publicKey: key,
  privateKeyFile: keyFile,
  peers: fc.uniqueArray(fc.record({ publicKey: key, wireGuardPort: port }), {
    maxLength: 4,
    selector: ({ publicKey }) => publicKey,
  }),
});
export const relayUnits: fc.Arbitrary<RelayUnit> = fc.record(
  {
    trust: fc.record({ staticKey: key }, { requiredKeys: [] }),
    services: fc.uniqueArray(service, { maxLength: 8, selector: ({ name }) => name }),
    identities: fc.uniqueArray(identity, { maxLength: 4, selector: ({ publicKey }) => publicKey }),
  },
  { requiredKeys: ['services', 'identities'] },
);

export const relayStates: fc.Arbitrary<RelayState> = fc.record(
  {
    proxies: fc.array(fc.record({ own: key, peer: key, wireGuardPort: port, port }), { maxLength: 5 }),
    relays: fc.array(
      fc.record(
        { name: fc.string({ maxLength: 512 }), connected: fc.boolean(), problem: fc.string({ maxLength: 1024 }) },
        { requiredKeys: ['name', 'connected'] },
      ),
      { maxLength: 5 },
    ),
    trust: fc.string({ maxLength: 64 }),
  },
  { requiredKeys: ['proxies', 'relays'] },
);

const count = fc.nat({ max: Number.MAX_SAFE_INTEGER });
const directions = fc.record({ sent: count, received: count });
export const relayTalliesOfAny: fc.Arbitrary<RelayTallies> = fc.record(
  {
    frames: directions,
    bytes: directions,
    connections: count,
    rebinds: count,
    dropped: fc.record({ noRelay: count, slowRelay: count, tooLong: count, unknownPeer: count, noWireGuard: count }),
    beats: count,
  },
  { requiredKeys: ['frames', 'bytes', 'connections', 'rebinds', 'dropped'] },
);

const label = fc.stringMatching(/^[a-z0-9]([-a-z0-9]{0,20}[a-z0-9])?$/);
const device = fc.record({ hostName: label, controlURL: label.map((name) => `https://${name}.example.com`) });
const asked = fc.record({
  podUID: fc.uuid(),
  netns: label.map((name) => `/run/netns/cni-${name}`),
  network: fc.record({
    addresses: fc.tuple(fc.ipV4(), fc.ipV6()).map((addresses) => addresses.slice(0, 2)),
    rules: fc.array(
      fc.record({
        priority: fc.integer({ min: 1, max: 32_765 }),
        to: prefix,
        table: fc.integer({ min: 256, max: 0xff_ffff }),
      }),
      { maxLength: 4 },
    ),
    routes: fc.array(
      fc.record({
        table: fc.integer({ min: 256, max: 0xff_ffff }),
        to: prefix,
        kind: fc.constantFrom('device', 'unreachable', 'throw'),
        metric: fc.nat({ max: 0xffff }),
      }),
      { maxLength: 4 },
    ),
  }),
});
export const deviceUnits: fc.Arbitrary<DeviceUnit> = fc.oneof(
  asked,
  fc.tuple(asked, device).map(([unit, of]) => ({ ...unit, device: of })),
);
export const deviceStates: fc.Arbitrary<DeviceState> = fc.record(
  {
    netns: fc.string({ maxLength: 255 }),
    network: fc.string({ maxLength: 64 }),
    hasIPv6: fc.boolean(),
    starts: count,
    problem: fc.string({ maxLength: 1024 }),
  },
  { requiredKeys: ['netns', 'hasIPv6', 'starts'] },
);

export const processesOfKeepers: fc.Arbitrary<KeeperProcesses> = fc.record({
  processes: fc.dictionary(
    fc.oneof(
      fc.constant('relay'),
      fc.integer({ min: 0, max: 99_999 }).map((number) => `wg${number}`),
    ),
    fc.record({ isRunning: fc.boolean(), starts: fc.nat() }),
    { maxKeys: 6 },
  ),
});
