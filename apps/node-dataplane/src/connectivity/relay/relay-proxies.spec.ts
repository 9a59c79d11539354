import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { RelayUnit } from '@unbounded/keeper-protocol';
import { type ManagedRelay, type ServiceLike, trustDigest } from '@unbounded/relay-client';
import { makeSelfSigned } from '@unbounded/testing/self-signed';
import { describe, expect, test, vi } from 'vitest';
import { createStateFaults } from '../../state/state-faults.ts';
import {
  clock,
  folder,
  LANE,
  openProxies,
  OWN,
  PEER,
  PLAN,
  stateWith,
  tellState,
  tellWatchers,
  unitFile,
  useProxies,
} from './relay-proxies.testdata.ts';
import { EXTERNAL, relayPlan } from './relay.testdata.ts';

/** Self-signed, made for this run. */
const CERTIFICATE = makeSelfSigned('ca');

const unit = (): RelayUnit => JSON.parse(readFileSync(unitFile(), 'utf8')) as RelayUnit;
const hosts = (): string[] => unit().services.flatMap(({ ways }) => ways.map(({ host }) => host));
const managed = relayPlan({ provider: 'managed' }, { listen: 51820, to: [PEER] });

useProxies();

describe('the unit', () => {
  test('asks for what the plan needs, and goes with the last peer that needs it', () => {
    const proxies = openProxies();
    expect(proxies.apply(PLAN)).toEqual([]);
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
    expect(openProxies(undefined, faults).apply(PLAN)).toEqual([]);
    expect(faults.problems().map(({ reason }) => reason)).toEqual(['StateNotWritable']);
  });

  test('says TLS where the mesh does', () => {
    openProxies().apply(relayPlan({ ...EXTERNAL, transport: 'tls' }, { listen: 51820, to: [PEER] }));
    expect(unit().services[0]?.ways).toEqual([{ host: 'relay.example.com', port: 3478, isTls: true }]);
  });

  test('has the authorities and the key by which relays are known, and no trust where the Mesh names none', () => {
    const trust = { caBundle: CERTIFICATE, staticKey: Buffer.alloc(32, 5).toString('base64') };
    const proxies = openProxies();
    proxies.apply(relayPlan({ ...EXTERNAL, transport: 'tls', ...trust }, { listen: 51820, to: [PEER] }));
    expect(unit().trust).toEqual(trust);
    proxies.apply(PLAN);
    expect(unit()).not.toHaveProperty('trust');
  });

  test('names no relay when what it would be known by is malformed, and the problem says so', () => {
    const bad = '-----BEGIN CERTIFICATE-----\nbm9uZQ==\n-----END CERTIFICATE-----';
    const proxies = openProxies();
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
    const proxies = openProxies(() => Promise.resolve({ service, nodes: [], gateways: [] }));
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
    const proxies = openProxies();
    proxies.apply(PLAN);
    const { ino } = statSync(unitFile());
    proxies.apply(PLAN);
    expect(statSync(unitFile()).ino).toBe(ino);
  });

  test('names no relay where the endpoint is none, and the problem says what would be right', () => {
    const bad = relayPlan({ ...EXTERNAL, endpoint: 'relay:99999' }, { listen: 51820, to: [PEER] });
    expect(openProxies().apply(bad)).toEqual([
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
    const proxies = openProxies();
    proxies.apply(PLAN);
    expect([proxies.endpointOf(LANE), proxies.isUp()]).toEqual([undefined, false]);
    const changed = vi.fn();
    proxies.onChange(changed);
    tellState(stateWith(true));
    await vi.waitUntil(() => changed.mock.calls.length > 0);
    expect([proxies.endpointOf(LANE), proxies.isUp()]).toEqual(['127.0.0.1:40000', true]);
    expect(proxies.endpointOf({ ...LANE, wireGuardPort: 51821 })).toBeUndefined();
    tellState(stateWith(false));
    await vi.waitUntil(() => !proxies.isUp());
  });

  test('of before is known at once to an agent that starts', () => {
    openProxies();
    tellState(stateWith(true));
    expect(openProxies().endpointOf(LANE)).toBe('127.0.0.1:40000');
  });

  test.each(['{"proxies":[', '{}', JSON.stringify(stateWith(true, 70_000))])(
    'that is none says nothing: %s',
    (text) => {
      openProxies();
      tellState(text);
      expect(openProxies().endpointOf(LANE)).toBeUndefined();
    },
  );

  test('that only a later agent can read leaves what was known, and is a problem with the remedy', async () => {
    const proxies = openProxies();
    proxies.apply(PLAN);
    tellState(stateWith(true));
    await vi.waitUntil(() => proxies.isUp());
    tellState({ ...stateWith(false, 41_000), version: 3, minReaderVersion: 3 });
    await vi.waitUntil(() => proxies.apply(PLAN).length > 0);
    expect(proxies.apply(PLAN)).toEqual([
      { reason: 'RelayStateUnreadable', message: expect.stringContaining('to the same version') },
    ]);
    expect([proxies.endpointOf(LANE), proxies.isUp()]).toEqual(['127.0.0.1:40000', true]);
    tellState({ ...stateWith(true, 41_000), version: 3, forThoseWhoKnow: [] });
    await vi.waitUntil(() => proxies.apply(PLAN).length === 0);
    expect(proxies.endpointOf(LANE)).toBe('127.0.0.1:41000');
  });

  test('a unit that node-keeper refuses is a problem for as long', () => {
    const proxies = openProxies();
    proxies.apply(PLAN);
    const rejected = join(folder, 'keeper/rejected.json');
    writeFileSync(rejected, JSON.stringify(['wg51820.json: x', 'relay.json: relay unit: services is absent']));
    expect(proxies.apply(PLAN)).toEqual([
      { reason: 'UnitRejected', message: expect.stringContaining('relay.json: relay unit: services is absent') },
    ]);
    rmSync(rejected);
    expect(proxies.apply(PLAN)).toEqual([]);
  });

  test('without a connected relay for 10 s is a problem', async () => {
    const proxies = openProxies();
    proxies.apply(PLAN);
    clock.ms = 9999;
    expect(proxies.apply(PLAN)).toEqual([]);
    tellState(stateWith(false));
    await vi.waitUntil(() => proxies.endpointOf(LANE) !== undefined);
    clock.ms = 10_000;
    expect(proxies.apply(PLAN)).toEqual([
      { reason: 'RelayUnavailable', message: 'no relay is connected: relay.example.com:3478' },
    ]);
    tellState(stateWith(true));
    await vi.waitUntil(() => proxies.isUp());
    expect(proxies.apply(PLAN)).toEqual([]);
  });

  test('the reason why a relay is away stands beside its name: a wrong certificate, for one', async () => {
    const proxies = openProxies();
    proxies.apply(PLAN);
    const [relay] = stateWith(false).relays;
    tellState({
      ...stateWith(false),
      relays: [{ ...relay, problem: 'relay.example.com:3478: self-signed certificate' }],
    });
    await vi.waitFor(() => expect(proxies.relays().away).toHaveLength(1));
    clock.ms += 10_000;
    expect(proxies.apply(PLAN)[0]?.message).toContain('relay.example.com:3478 - relay.example.com:3478: self-signed');
  });

  test('a keeper that does not follow the trust of the Mesh is told of, though its relay is connected', async () => {
    const trusting = { ...EXTERNAL, staticKey: Buffer.alloc(32, 5).toString('base64') };
    const pinned = relayPlan(trusting, { listen: 51820, to: [PEER] });
    const proxies = openProxies();
    tellState(stateWith(true));
    proxies.apply(pinned);
    await vi.waitFor(() => expect(proxies.isUp()).toBe(true));
    clock.ms += 10_000;
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
    const proxies = openProxies(async () => ({ service: service(ways), nodes: [], gateways: [] }));
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
    const proxies = openProxies(async () => ({ service: service(ways), nodes: [], gateways: [] }));
    proxies.apply(managed);
    const hostsFound = (): string[] => proxies.waysOf(managed).map(({ host }) => host);
    await vi.waitUntil(() => hostsFound().length > 0);
    ways = ['192.0.2.9', '192.0.2.10'];
    tellWatchers();
    await vi.waitUntil(() => hostsFound().length === 2);
    expect(hostsFound()).toEqual(ways);
  });

  test('that was found is known to an agent that starts without the API server', async () => {
    const first = openProxies(found('192.0.2.9'));
    first.apply(managed);
    await vi.waitUntil(() => first.waysOf(managed).length > 0);
    rmSync(unitFile());
    const failing = openProxies(() => Promise.reject(new Error('the API server is away')));
    expect(failing.apply(managed)).toEqual([]);
    expect(hosts()).toEqual(['192.0.2.9']);
  });

  test('is not asked for where there is an external one, and not where there is no API server', async () => {
    const read = vi.fn(found('192.0.2.9'));
    openProxies(read).apply(PLAN);
    expect(read).not.toHaveBeenCalled();
    const named = openProxies(async () => {
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
    const former = openProxies(read);
    former.apply(managed);
    await vi.waitUntil(() => former.waysOf(managed).length > 0);
    expect(former.waysOf(PLAN)).toEqual([]);
    rmSync(folder, { recursive: true });
    expect(openProxies().apply(managed)).toEqual([expect.objectContaining({ reason: 'RelayNotFound' })]);
  });
});
