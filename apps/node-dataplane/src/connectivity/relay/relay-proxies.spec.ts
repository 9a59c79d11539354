import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { relayTallies, type RelayUnit } from '@unbounded/keeper-protocol';
import { type ManagedRelay, type ServiceLike, trustDigest } from '@unbounded/relay-client';
import { execFileSync } from 'node:child_process';
import { silentLogger } from '@unbounded/telemetry';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { createStateFaults } from '../../state/state-faults.ts';
import { createRelayProxies, type RelayProxies, type RelayProxiesOptions } from './relay-proxies.ts';
import { EXTERNAL, relayPlan } from './relay.testdata.ts';

/** Self-signed, made for this run. */
const CERTIFICATE = execFileSync(
  'openssl',
  [
    'req',
    '-x509',
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:P-256',
    '-nodes',
    '-days',
    '2',
    '-subj',
    '/CN=ca',
    '-keyout',
    '/dev/null',
  ],
  { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] },
);

/** Public keys; what relayPlan knows a relayed peer by is that it has capitals only. */
const [OWN, PEER] = [`${'O'.repeat(42)}A=`, `${'P'.repeat(42)}A=`];

let folder: string;
let clockMs: number;
let opened: RelayProxies[];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'relay-'));
  [clockMs, opened] = [0, []];
});
afterEach(() => {
  for (const proxies of opened) proxies.stop();
  rmSync(folder, { recursive: true });
});

const unitFile = (): string => join(folder, 'keeper/relay.json');
/** Of what is watched: tells that it is another. */
let tellWatchers: () => void;
const open = (
  read?: NonNullable<RelayProxiesOptions['managed']>['read'],
  faults = createStateFaults(),
): RelayProxies => {
  const proxies = createRelayProxies({
    unitFile: unitFile(),
    stateFile: join(folder, 'keeper/relay-state.json'),
    talliesFile: join(folder, 'keeper/relay-tallies.json'),
    stateDir: folder,
    keyOf: () => ({ publicKey: OWN, file: '/etc/wireguard/server.priv' }),
    managed: read && {
      read,
      watch: (onChange) => {
        tellWatchers = onChange;
        return () => undefined;
      },
    },
    faults,
    logger: silentLogger,
    now: () => clockMs,
  });
  opened.push(proxies);
  return proxies;
};
const unit = (): RelayUnit => JSON.parse(readFileSync(unitFile(), 'utf8')) as RelayUnit;
const hosts = (): string[] => unit().services.flatMap(({ ways }) => ways.map(({ host }) => host));
const lane = { own: OWN, peer: PEER, wireGuardPort: 51820 };
const tellState = (value: unknown): void => {
  const file = join(folder, 'keeper/relay-state.json');
  writeFileSync(`${file}.new`, typeof value === 'string' ? value : JSON.stringify(value));
  renameSync(`${file}.new`, file);
};
/** As the proxies' process does every two seconds. */
let beats = 0;
const beat = (): void => {
  const none = { sent: 0, received: 0 };
  const tallies = { frames: none, bytes: none, connections: 1, rebinds: 0, dropped: {} };
  relayTallies.write(join(folder, 'keeper/relay-tallies.json'), { ...tallies, beats: ++beats });
};
const stateWith = (connected: boolean, port = 40_000) => ({
  proxies: [{ ...lane, port }],
  relays: [{ name: 'relay.example.com:3478', connected }],
});
const plan = relayPlan(EXTERNAL, { listen: 51820, to: [PEER] });
const managed = relayPlan({ provider: 'managed' }, { listen: 51820, to: [PEER] });

describe('the unit', () => {
  test('asks for what the plan needs, and goes with the last peer that needs it', () => {
    const proxies = open();
    expect(proxies.apply(plan)).toEqual([]);
    expect(unit()).toMatchObject({
      services: [{ ways: [{ host: 'relay.example.com', port: 3478, isTls: false }] }],
      identities: [{ publicKey: OWN, peers: [{ publicKey: PEER, wireGuardPort: 51820 }] }],
    });
    proxies.apply(relayPlan(undefined, { listen: 51820, to: ['near'] }));
    expect(existsSync(unitFile())).toBe(false);
  });

  test('is reported when it cannot be read or written, and ends nothing', () => {
    mkdirSync(unitFile(), { recursive: true });
    const faults = createStateFaults();
    expect(open(undefined, faults).apply(plan)).toEqual([]);
    expect(faults.problems().map(({ reason }) => reason)).toEqual(['StateNotWritable']);
  });

  test('says TLS where the mesh does', () => {
    open().apply(relayPlan({ ...EXTERNAL, transport: 'tls' }, { listen: 51820, to: [PEER] }));
    expect(unit().services[0]?.ways).toEqual([{ host: 'relay.example.com', port: 3478, isTls: true }]);
  });

  test('has the authorities and the key by which relays are known, and no trust where the Mesh names none', () => {
    const trust = { caBundle: CERTIFICATE, staticKey: Buffer.alloc(32, 5).toString('base64') };
    const proxies = open();
    proxies.apply(relayPlan({ ...EXTERNAL, transport: 'tls', ...trust }, { listen: 51820, to: [PEER] }));
    expect(unit().trust).toEqual(trust);
    proxies.apply(plan);
    expect(unit()).not.toHaveProperty('trust');
  });

  test('names no relay when what it would be known by is malformed, and the problem says so', () => {
    const bad = '-----BEGIN CERTIFICATE-----\nbm9uZQ==\n-----END CERTIFICATE-----';
    const proxies = open();
    expect(
      proxies.apply(relayPlan({ ...EXTERNAL, transport: 'tls', caBundle: bad }, { listen: 51820, to: [PEER] })),
    ).toEqual([
      { reason: 'InvalidRelay', message: expect.stringContaining('spec.relay.caBundle: certificate 1 cannot be read') },
    ]);
    expect(unit()).toMatchObject({ services: [], identities: [{ publicKey: OWN }] });
    expect(unit()).not.toHaveProperty('trust');
  });

  test('reaches a managed relay by TLS where the Mesh names its certificate, also one that was found before', async () => {
    const service: ServiceLike = {
      spec: { ports: [{ port: 3478 }] },
      status: { loadBalancer: { ingress: [{ ip: '203.0.113.5' }] } },
    };
    const proxies = open(() => Promise.resolve({ service, nodes: [], gateways: [] }));
    proxies.apply(managed);
    await vi.waitFor(() => {
      proxies.apply(managed);
      expect(unit().services[0]?.ways).toEqual([{ host: '203.0.113.5', port: 3478, isTls: false }]);
    });
    proxies.apply(relayPlan({ provider: 'managed', serverName: 'relay.example.com' }, { listen: 51820, to: [PEER] }));
    expect(unit().services[0]?.ways).toEqual([
      { host: '203.0.113.5', port: 3478, isTls: true, serverName: 'relay.example.com' },
    ]);
  });

  test('is written once', () => {
    const proxies = open();
    proxies.apply(plan);
    const { ino } = statSync(unitFile());
    proxies.apply(plan);
    expect(statSync(unitFile()).ino).toBe(ino);
  });

  test('names no relay where the endpoint is none, and the problem says what would be right', () => {
    const bad = relayPlan({ ...EXTERNAL, endpoint: 'relay:99999' }, { listen: 51820, to: [PEER] });
    expect(open().apply(bad)).toEqual([
      {
        reason: 'InvalidRelay',
        message: expect.stringContaining('"relay:99999" has port 99999: must be like relay.example.com:3478'),
      },
    ]);
    expect(unit().services).toEqual([]);
  });
});

describe('the state', () => {
  test('says where a peer’s proxy is, and whether a relay is connected; changes are told', async () => {
    const proxies = open();
    proxies.apply(plan);
    expect([proxies.endpointOf(lane), proxies.isUp()]).toEqual([undefined, false]);
    const changed = vi.fn();
    proxies.onChange(changed);
    tellState(stateWith(true));
    await vi.waitUntil(() => changed.mock.calls.length > 0);
    expect([proxies.endpointOf(lane), proxies.isUp()]).toEqual(['127.0.0.1:40000', true]);
    expect(proxies.endpointOf({ ...lane, wireGuardPort: 51821 })).toBeUndefined();
    tellState(stateWith(false));
    await vi.waitUntil(() => !proxies.isUp());
  });

  test('of before is known at once to an agent that starts', () => {
    open();
    tellState(stateWith(true));
    expect(open().endpointOf(lane)).toBe('127.0.0.1:40000');
  });

  test.each(['{"proxies":[', '{}', JSON.stringify(stateWith(true, 70_000))])(
    'that is none says nothing: %s',
    (text) => {
      open();
      tellState(text);
      expect(open().endpointOf(lane)).toBeUndefined();
    },
  );

  test('that only a later agent can read leaves what was known, and is a problem with the remedy', async () => {
    const proxies = open();
    proxies.apply(plan);
    tellState(stateWith(true));
    await vi.waitUntil(() => proxies.isUp());
    tellState({ ...stateWith(false, 41_000), version: 3, minReaderVersion: 3 });
    await vi.waitUntil(() => proxies.apply(plan).length > 0);
    expect(proxies.apply(plan)).toEqual([
      { reason: 'RelayStateUnreadable', message: expect.stringContaining('to the same version') },
    ]);
    expect([proxies.endpointOf(lane), proxies.isUp()]).toEqual(['127.0.0.1:40000', true]);
    tellState({ ...stateWith(true, 41_000), version: 3, forThoseWhoKnow: [] });
    await vi.waitUntil(() => proxies.apply(plan).length === 0);
    expect(proxies.endpointOf(lane)).toBe('127.0.0.1:41000');
  });

  test('a unit that node-keeper refuses is a problem for as long', () => {
    const proxies = open();
    proxies.apply(plan);
    const rejected = join(folder, 'keeper/rejected.json');
    writeFileSync(rejected, JSON.stringify(['wg51820.json: x', 'relay.json: relay unit: services is absent']));
    expect(proxies.apply(plan)).toEqual([
      { reason: 'UnitRejected', message: expect.stringContaining('relay.json: relay unit: services is absent') },
    ]);
    rmSync(rejected);
    expect(proxies.apply(plan)).toEqual([]);
  });

  test('without a connected relay for 10 s is a problem', async () => {
    const proxies = open();
    proxies.apply(plan);
    clockMs = 9999;
    expect(proxies.apply(plan)).toEqual([]);
    tellState(stateWith(false));
    await vi.waitUntil(() => proxies.endpointOf(lane) !== undefined);
    clockMs = 10_000;
    expect(proxies.apply(plan)).toEqual([
      { reason: 'RelayUnavailable', message: 'no relay is connected: relay.example.com:3478' },
    ]);
    tellState(stateWith(true));
    await vi.waitUntil(() => proxies.isUp());
    expect(proxies.apply(plan)).toEqual([]);
  });

  describe('of proxies whose process has ended', () => {
    let proxies: RelayProxies;
    let changes: number;
    /** Passes of the agent, one every 5 s. @returns the messages of the last one */
    const pass = (seconds: number, meanwhile: () => void = () => undefined): string[] => {
      let messages: string[] = [];
      for (const endMs = clockMs + 1000 * seconds; clockMs < endMs;) {
        clockMs += 5000;
        meanwhile();
        messages = proxies.apply(plan).map(({ message }) => message);
      }
      return messages;
    };
    beforeEach(() => {
      mkdirSync(join(folder, 'keeper'));
      proxies = open();
      changes = 0;
      proxies.onChange(() => changes++);
      tellState(stateWith(true));
    });

    test('is not believed for longer than half a minute, and is again once they write', () => {
      expect(pass(120, beat)).toEqual([]);
      expect(pass(25)).toEqual([]);
      changes = 0;
      expect(pass(10)).toEqual([expect.stringContaining('has not said for half a minute that it lives')]);
      expect([proxies.isUp(), proxies.relays().away, changes]).toEqual([false, ['relay.example.com:3478'], 1]);
      expect(pass(60)).toHaveLength(1);
      expect(pass(5, beat)).toEqual([]);
      expect([proxies.isUp(), changes]).toEqual([true, 2]);
    });

    test('is believed at once when they have written another state, and after a time in which no relay was wanted', () => {
      pass(120, beat);
      expect(pass(60)).toHaveLength(1);
      tellState(stateWith(true, 40_001));
      expect(pass(5)).toEqual([]);
      expect(pass(60)).toHaveLength(1);
      proxies.apply(relayPlan(undefined, { listen: 51820, to: ['near'] }));
      expect(proxies.relays().connected).toHaveLength(1);
      expect(pass(5)).toEqual([]);
    });

    test('stays so while the counters cannot be read for a moment', () => {
      pass(120, beat);
      expect(pass(60)).toHaveLength(1);
      const file = join(folder, 'keeper/relay-tallies.json');
      renameSync(file, `${file}.kept`);
      mkdirSync(file);
      expect(pass(5)).toHaveLength(1);
      rmSync(file, { recursive: true });
      renameSync(`${file}.kept`, file);
      expect(pass(5)).toHaveLength(1);
    });

    test('stands as it is where the keeper is of a version that says nothing of that', () => {
      expect(pass(300)).toEqual([]);
      expect(proxies.isUp()).toBe(true);
    });

    test('is believed after an hour in which the agent itself was stopped', () => {
      expect(pass(60, beat)).toEqual([]);
      clockMs += 3_600_000;
      expect(pass(5)).toEqual([]);
      expect(pass(60, beat)).toEqual([]);
    });
  });

  test('the reason why a relay is away stands beside its name: a wrong certificate, for one', async () => {
    const proxies = open();
    proxies.apply(plan);
    const [relay] = stateWith(false).relays;
    tellState({
      ...stateWith(false),
      relays: [{ ...relay, problem: 'relay.example.com:3478: self-signed certificate' }],
    });
    await vi.waitFor(() => expect(proxies.relays().away).toHaveLength(1));
    clockMs += 10_000;
    expect(proxies.apply(plan)[0]?.message).toContain('relay.example.com:3478 - relay.example.com:3478: self-signed');
  });

  test('a keeper that does not follow the trust of the Mesh is told of, though its relay is connected', async () => {
    const trusting = { ...EXTERNAL, staticKey: Buffer.alloc(32, 5).toString('base64') };
    const pinned = relayPlan(trusting, { listen: 51820, to: [PEER] });
    const proxies = open();
    tellState(stateWith(true));
    proxies.apply(pinned);
    await vi.waitFor(() => expect(proxies.isUp()).toBe(true));
    clockMs += 10_000;
    expect(proxies.apply(pinned).map(({ reason }) => reason)).toEqual(['RelayTrustIgnored']);
    tellState({ ...stateWith(true), trust: trustDigest(trusting) });
    await vi.waitFor(() => expect(proxies.apply(pinned)).toEqual([]));
  });
});

describe('the managed relay', () => {
  const service = (externalIPs: readonly string[]): ServiceLike => ({ spec: { externalIPs, ports: [{ port: 3478 }] } });
  const found =
    (...externalIPs: string[]) =>
    async (): Promise<ManagedRelay> => ({ service: service(externalIPs), nodes: [], gateways: [] });

  test('is waited for, with a problem, and then it is in the unit', async () => {
    let ways = [''];
    const proxies = open(async () => ({ service: service(ways), nodes: [], gateways: [] }));
    expect(proxies.apply(managed)).toEqual([
      { reason: 'RelayNotFound', message: expect.stringContaining('no address of the managed relay is known yet') },
    ]);
    expect(unit()).toMatchObject({ services: [], identities: [{ publicKey: OWN }] });
    const changed = vi.fn();
    proxies.onChange(changed);
    ways = ['192.0.2.9'];
    await vi.waitUntil(() => changed.mock.calls.length > 0, 5000);
    // What leads there is written first.
    expect([proxies.waysOf(managed), hosts()]).toEqual([[{ host: '192.0.2.9', port: 3478, isTls: false }], []]);
    expect(proxies.apply(managed)).toEqual([]);
    expect(hosts()).toEqual(['192.0.2.9']);
  });

  test('that is another is looked for at once', async () => {
    let ways = ['192.0.2.9'];
    const proxies = open(async () => ({ service: service(ways), nodes: [], gateways: [] }));
    proxies.apply(managed);
    const hostsFound = (): string[] => proxies.waysOf(managed).map(({ host }) => host);
    await vi.waitUntil(() => hostsFound().length > 0);
    ways = ['192.0.2.9', '192.0.2.10'];
    tellWatchers();
    await vi.waitUntil(() => hostsFound().length === 2);
    expect(hostsFound()).toEqual(ways);
  });

  test('that was found is known to an agent that starts without the API server', async () => {
    const first = open(found('192.0.2.9'));
    first.apply(managed);
    await vi.waitUntil(() => first.waysOf(managed).length > 0);
    rmSync(unitFile());
    const failing = open(() => Promise.reject(new Error('the API server is away')));
    expect(failing.apply(managed)).toEqual([]);
    expect(hosts()).toEqual(['192.0.2.9']);
  });

  test('is not asked for where there is an external one, and not where there is no API server', async () => {
    const read = vi.fn(found('192.0.2.9'));
    open(read).apply(plan);
    expect(read).not.toHaveBeenCalled();
    const named = open(async () => {
      return {
        service: { ...service([]), status: { loadBalancer: { ingress: [{ hostname: 'lb.example' }] } } },
        nodes: [],
        gateways: [],
      };
    });
    const told = vi.fn();
    named.onChange(told);
    named.apply(managed);
    await vi.waitUntil(() => told.mock.calls.length > 0);
    expect(named.waysOf(managed)).toEqual([]);
    const former = open(read);
    former.apply(managed);
    await vi.waitUntil(() => former.waysOf(managed).length > 0);
    expect(former.waysOf(plan)).toEqual([]);
    rmSync(folder, { recursive: true });
    expect(open().apply(managed)).toEqual([expect.objectContaining({ reason: 'RelayNotFound' })]);
  });
});
