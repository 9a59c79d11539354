import { mkdirSync, mkdtempSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { RelayUnit } from '@unbounded/keeper-protocol';
import { trustDigest } from '@unbounded/relay-client';
import { type AppProcess, until } from '@unbounded/testing';
import { makeSelfSigned } from '@unbounded/testing/self-signed';
import { generatePrivateKey, publicKeyOf } from '@unbounded/wireguard';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { isAlive, type OwnKey, type RelayNode, type StandIn, unitOf } from './relay.scenario.ts';
import { startRelayOn, TwoNodes } from './two-nodes.scenario.ts';

let bed: TwoNodes;
let a: RelayNode;
let b: RelayNode;
let keyA: OwnKey;
let keyB: OwnKey;
let wireGuardA: StandIn;
let wireGuardB: StandIn;

const openBed = async (): Promise<void> => {
  bed = await TwoNodes.open();
  ({ a, b, keyA, keyB, wireGuardA, wireGuardB } = bed);
};
/** For tests after which no other can go on. */
const aBedForEach = (): void => {
  beforeEach(openBed);
  afterEach(() => bed.close());
};
/** For tests that leave processes and keys as they were. */
const aBedForAll = (): void => {
  beforeAll(openBed);
  beforeEach(() => bed.restore());
  afterAll(() => bed.close());
};

describe('the relay’s proxies', () => {
  aBedForAll();

  test('carry packets both ways, and each peer stands at one port', async () => {
    await bed.expectPackets();
    expect(a.state).toEqual({
      proxies: [
        { own: keyA.publicKey, peer: keyB.publicKey, wireGuardPort: wireGuardA.port, port: expect.any(Number) },
      ],
      relays: [{ name: 'relay', connected: true }],
    });
    expect(a.portOf(keyA, keyB)).toBeLessThan(51_820); // above are those of WireGuard interfaces
  });

  test('take away counters that they can no longer write, so that nobody takes their process for dead', async () => {
    await until('they count', () => a.tallies);
    const inTheWay = join(a.folder, 'relay-tallies.json.new');
    mkdirSync(inTheWay);
    await until('they are gone', () => a.tallies === undefined);
    rmdirSync(inTheWay);
    await until('they count again', () => a.tallies);
    expect(a.isConnected).toBe(true);
  });

  test.each([
    ['the unit is none', { services: [], identities: [{}] }, 'identities[0].publicKey is absent'],
    ['a later reader is needed for the unit', { services: [], identities: [], minReaderVersion: 2 }, 'delete its pod'],
  ])('go on as they are while %s, and the agent finds the reason', async (_, unit, reason) => {
    const { pid } = a;
    const good = readFileSync(a.unitFile, 'utf8');
    const refusals = () => a.log.join('').split('unit rejected').length;
    const before = refusals();
    a.write(unit);
    await until('refused', () => refusals() > before);
    await until('the reason is there', () => a.rejections[0]?.includes(reason));
    await bed.expectPackets();
    expect(a.pid).toBe(pid);
    a.write(good);
    await until('the reason is gone', () => a.rejections.length === 0);
  });

  test('follow a unit of a later version for what they know of it', async () => {
    const { pid } = a;
    const [other, peer] = [a.newKey(), b.newKey()];
    const lane = await a.wireGuard();
    const unit = unitOf(
      bed.relayPort,
      { own: keyA, peers: [[keyB, wireGuardA]] },
      { own: other, peers: [[peer, lane]] },
    );
    a.write({ ...unit, version: 2, aFieldOfLater: { x: 1 } });
    await until('its proxy', () => a.portOf(other, peer));
    await bed.expectPackets();
    expect(a.pid).toBe(pid);
  });

  test('do without a key whose file holds another, and take it when it is right', async () => {
    const [other, peer] = [a.newKey(), b.newKey()];
    const lane = await a.wireGuard();
    const wrong = { ...other, file: keyA.file };
    const identity = { own: keyA, peers: [[keyB, wireGuardA]] } as const;
    a.write(unitOf(bed.relayPort, identity, { own: wrong, peers: [[peer, lane]] }));
    await until('told', () => a.log.some((line) => line.includes('is not the private key of')));
    await bed.expectPackets();
    a.write(unitOf(bed.relayPort, identity, { own: other, peers: [[peer, lane]] }));
    await until('its proxy', () => a.portOf(other, peer));
    expect(a.state?.proxies).toHaveLength(2);
  });

  test('show no secret in arguments, environment, log and state, and may do little', () => {
    const proc = (name: string): string => readFileSync(`/proc/${a.pid}/${name}`, 'utf8');
    const shown = [proc('cmdline'), proc('environ'), ...a.log, JSON.stringify(a.state)].join('\n');
    expect(shown).not.toContain(keyA.privateKey);
    expect(proc('environ')).not.toMatch(/SECRET_TOKEN|KUBECONFIG/);
    expect(proc('cmdline')).toContain('--permission');
  });
});

describe('the relay’s proxies, when something ends,', () => {
  aBedForEach();

  test('tell what they carried, and what was lost', async () => {
    await bed.expectPackets();
    await until('it is told', () => (a.tallies?.frames.sent ?? 0) >= 1 && (a.tallies?.frames.received ?? 0) >= 1);
    expect(a.tallies).toMatchObject({ connections: 1, dropped: { noRelay: 0 } });
    const beats = a.tallies!.beats!;
    await until('it beats although nothing is carried', () => a.tallies!.beats! > beats + 1);
    expect(a.tallies!.bytes.received).toBeGreaterThan(a.tallies!.frames.received);
    await bed.relay.stop('SIGKILL');
    await until('the loss is seen', () => !a.isConnected);
    wireGuardA.send('\u0004 to nowhere', a.portOf(keyA, keyB)!);
    await until('it is told', () => (a.tallies?.dropped.noRelay ?? 0) >= 1);
  });

  test('live on when the keeper is killed, log to nobody, and its successor finds them', async () => {
    const [pid, port] = [a.pid, a.portOf(keyA, keyB)];
    await a.killKeeper();
    await bed.relay.stop('SIGKILL'); // gives them something to log
    await until('the loss is seen', () => !a.isConnected);
    await bed.startRelay(bed.relayPort);
    await until('both are back', () => a.isConnected && b.isConnected);
    await bed.expectPackets();
    a.startKeeper();
    await until('found', () => a.log.some((line) => line.includes('found a running process')));
    expect([a.pid, a.portOf(keyA, keyB)]).toEqual([pid, port]);
    process.kill(pid, 'SIGKILL');
    await until('another process', () => a.pid !== pid);
    await bed.expectPackets();
  });

  test('come back when their process is killed, with the same ports, after one short rest', async () => {
    const [pid, port] = [a.pid, a.portOf(keyA, keyB)];
    process.kill(pid, 'SIGKILL');
    await until('another process', () => a.pid !== pid && isAlive(a.pid));
    await bed.expectPackets();
    expect(a.portOf(keyA, keyB)).toBe(port);
    // How long that takes on a quiet machine is in two-seconds.matrix.spec.ts. What is decided here is this rest, and no other.
    expect(a.log.join('').match(/"restMs":\d+/g)).toEqual([expect.stringMatching(/:(50|100)$/)]);
  });

  test('serve two keys of a node that exchanges its key, and a peer’s next one', async () => {
    const [nextA, nextB] = [a.newKey(), b.newKey()];
    const lanes = await Promise.all([1, 2, 3].map(() => a.wireGuard()));
    const port = a.portOf(keyA, keyB);
    const both = {
      own: keyA,
      peers: [
        [keyB, wireGuardA],
        [nextB, lanes[0]!],
      ],
    } as const;
    a.write(
      unitOf(bed.relayPort, both, {
        own: nextA,
        peers: [
          [keyB, lanes[1]!],
          [nextB, lanes[2]!],
        ],
      }),
    );
    b.write(
      unitOf(bed.relayPort, {
        own: keyB,
        peers: [
          [keyA, wireGuardB],
          [nextA, wireGuardB],
        ],
      }),
    );
    await until('four proxies', () => a.state?.proxies.length === 4 && b.state?.proxies.length === 2);
    expect(a.portOf(keyA, keyB)).toBe(port);
    await bed.expectPackets();
    await until('the next key is called', () => {
      wireGuardB.send('\u0004 next', b.portOf(keyB, nextA)!);
      return lanes[1]!.got.some(({ text, from }) => text === '\u0004 next' && from === a.portOf(nextA, keyB));
    });
    // The exchange is over: the former key's file is gone before the unit says so.
    rmSync(keyA.file);
    a.write(unitOf(bed.relayPort, both));
    await until('one key again', () => a.state?.proxies.length === 2);
    await bed.expectPackets();
  });

  test('end when their unit goes, also without a keeper', async () => {
    const { pid } = a;
    await a.killKeeper();
    rmSync(a.unitFile);
    await until('ended', () => !isAlive(pid));
    expect(a.state).toBeUndefined();
  });
});

const MOST_AT_ONCE = 50;

/** Numbered packets from a to b, 1,000 a second; how long none came, at most, and how many did not. */
const flowDuring = async (disturb: () => Promise<unknown>): Promise<{ gapMs: number; lost: number }> => {
  const port = a.portOf(keyA, keyB)!;
  const arrivedMs: number[] = [];
  const seen = new Set<string>();
  wireGuardB.onPacket((text) => {
    arrivedMs.push(performance.now());
    seen.add(text);
  });
  let sent = 0;
  let began = performance.now();
  const timer = setInterval(() => {
    // What was missed while this process was held up is not made up for: a socket takes only so many at once.
    began = Math.max(began, performance.now() - sent - MOST_AT_ONCE);
    while (sent < performance.now() - began) wireGuardA.send(`\u0004 flow ${sent++}`, port);
  }, 1);
  await until('it flows', () => arrivedMs.length > 200);
  await disturb();
  const soFar = arrivedMs.length;
  await until('it goes on', () => arrivedMs.length > soFar + 1000);
  clearInterval(timer);
  const last = `\u0004 flow ${sent - 1}`;
  await until('the last one', () => seen.has(last));
  const gaps = arrivedMs.slice(1).map((ms, index) => ms - arrivedMs[index]!);
  return { gapMs: Math.max(...gaps), lost: sent - seen.size };
};

/** A killed relay stays away for so long: packets that wait for it are told from those that go by the other. */
const AWAY_MS = 5000;

const isWhole = (node: RelayNode) => node.state?.relays.filter(({ connected }) => connected).length === 2;

describe('of two relays', () => {
  aBedForEach();
  let other: AppProcess;
  beforeEach(async () => {
    const { app, port } = await startRelayOn(0);
    other = app;
    a.write(unitOf([bed.relayPort, port], { own: keyA, peers: [[keyB, wireGuardA]] }));
    b.write(unitOf([bed.relayPort, port], { own: keyB, peers: [[keyA, wireGuardB]] }));
    await until('both know both', () => isWhole(a) && isWhole(b));
  });
  afterEach(() => other.stop('SIGKILL'));

  test('one that is killed is not waited for', async () => {
    for (const each of [bed.relay, other]) {
      const { gapMs } = await flowDuring(async () => {
        await each.stop('SIGKILL');
        await delay(AWAY_MS);
        if (each === other) return;
        await bed.startRelay(bed.relayPort);
        await until('both are back', () => isWhole(a) && isWhole(b), 30_000);
      });
      expect(gapMs).toBeLessThan(AWAY_MS);
    }
  });

  test('one that is asked to end loses nothing', async () => {
    const { lost } = await flowDuring(() => bed.relay.stop('SIGTERM'));
    expect(lost).toBe(0);
  });
});

describe('what relays are known by', () => {
  aBedForAll();
  let folder: string;
  let secure: AppProcess;
  let port: number;
  const file = (name: string): string => join(folder, name);
  const certify = (name: string): string => {
    const files = { key: file(`${name}.key`), cert: file(`${name}.crt`) };
    makeSelfSigned('relay', { ...files, altNames: ['DNS:relay.example.com'] });
    return readFileSync(file(`${name}.crt`), 'utf8');
  };
  let caBundle: string;
  let staticKey: string;

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'relay-tls-'));
    caBundle = certify('relay');
    const privateKey = generatePrivateKey();
    staticKey = publicKeyOf(privateKey);
    writeFileSync(file('static.key'), privateKey);
    const tls = ['--tls-cert', file('relay.crt'), '--tls-key', file('relay.key'), '--key-file', file('static.key')];
    ({ app: secure, port } = await startRelayOn(0, ...tls));
  });
  afterEach(async () => {
    await secure.stop('SIGKILL');
    rmSync(folder, { recursive: true });
  });

  const unit = (trust: object, serverName = 'relay.example.com') => {
    const plain = unitOf(port, { own: keyA, peers: [[keyB, wireGuardA]] });
    const ways = [{ host: '127.0.0.1', port, isTls: true, serverName }];
    return { ...plain, trust, services: [{ name: 'secure', ways }] };
  };
  const problem = () => a.state?.relays.find(({ name, connected }) => name === 'secure' && !connected)?.problem;

  test.each<[string, () => RelayUnit, string]>([
    ['authorities that have not signed its certificate', () => unit({ caBundle: certify('other') }), 'certificate'],
    ['another name', () => unit({ caBundle }, 'other.example.com'), 'other.example.com'],
    ['no authorities but the system’s', () => unit({ staticKey }), 'certificate'],
    [
      'another static key',
      () => unit({ caBundle, staticKey: publicKeyOf(generatePrivateKey()) }),
      'another key than the pinned one',
    ],
  ])('a relay is left for %s, and the state says why; nothing goes to it plainly', async (_, wrong, why) => {
    const before = a.portOf(keyA, keyB);
    a.write(wrong());
    await until('the reason is told', () => problem()?.includes(why));
    expect(a.isConnected).toBe(false);
    a.write(unit({ caBundle, staticKey }));
    await until('connected', () => a.isConnected);
    expect(a.state).toMatchObject({ trust: trustDigest({ caBundle, staticKey }) });
    expect(a.portOf(keyA, keyB)).toBe(before);
  });

  test('a relay that was trusted with less is connected to anew', async () => {
    a.write(unit({ caBundle }));
    await until('connected', () => a.isConnected && a.state?.trust === trustDigest({ caBundle }));
    a.write(unit({ caBundle, staticKey: publicKeyOf(generatePrivateKey()) }));
    await until('it has been left', () => problem()?.includes('pinned'));
    expect(a.isConnected).toBe(false);
  });

  test('a renewed certificate is served without a restart', async () => {
    a.write(unit({ caBundle }));
    await until('connected', () => a.isConnected);
    const renewed = certify('relay');
    a.write(unit({ caBundle: renewed }));
    await until(
      'connected by the new one',
      () => a.isConnected && a.state?.trust === trustDigest({ caBundle: renewed }),
      30_000,
    );
    expect(a.isConnected).toBe(true);
  });
});
