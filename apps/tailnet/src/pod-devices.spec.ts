import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import type { TailnetDevice } from '@unbounded/crds';
import { parsePrefix, type Prefix } from '@unbounded/ip';
import { deviceState, deviceUnit, networkDigest } from '@unbounded/keeper-protocol';
import { sealKey, type StartPolicy } from '@unbounded/tailnet';
import { createLogger } from '@unbounded/telemetry';
import { until } from '@unbounded/testing';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { NodeStatusPatch } from './device.plan.ts';
import { createKeeperFiles } from './keeper-files.ts';
import { createKeptPods, type KeptPods } from './kept-pods.ts';
import { createPodDevices, type PodDevices } from './pod-devices.ts';

/** Pods of a node with files, sockets and a keeper that only says that networks stand; records are in memory. */

const POD = '0f6e5b1c-1111-4222-8333-444455556666';
const ADDRESSES = ['100.64.0.7', 'fd7a:115c:a1e0::7'];

let folder: string;
let records: Map<string, TailnetDevice>;
let areRecordsKnown: boolean;
let cluster: readonly Prefix[] | undefined;
let isPodGone: () => Promise<boolean>;
/** By the API server itself; undefined: as the agent's cache has it. */
let isRecordGone: (() => Promise<boolean>) | undefined;
let isKeeperAway: boolean;
let isDiskFull: boolean;
let agents: PodDevices[];
/** Identities of the devices that came up. */
let ups: [identity: string, seconds: number][];
let servers: Server[];
let keeping: NodeJS.Timeout;

const logger = createLogger({ name: 'test', level: 'silent' });
const [unitsDir, statesDir] = [() => join(folder, 'run/units'), () => join(folder, 'run/states')];
const podFolder = (podUID = POD): string => join(folder, 'pods', podUID);

/** As the keeper does: a state for each unit, and none where there is no unit. */
const tendOnce = (): void => {
  if (isKeeperAway) return;
  const units = readdirSync(unitsDir()).map((name) => deviceUnit.read(join(unitsDir(), name)));
  for (const unit of units) {
    const state = { netns: unit.netns, network: networkDigest(unit), hasIPv6: true, starts: 1 };
    deviceState.write(join(statesDir(), `${unit.podUID}.json`), state);
  }
  for (const name of readdirSync(statesDir()))
    if (!units.some(({ podUID }) => name === `${podUID}.json`)) rmSync(join(statesDir(), name));
};

const startAgent = (): PodDevices => {
  const files = createKeptPods(join(folder, 'pods'));
  const write: KeptPods['write'] = (pod) => {
    if (isDiskFull) throw new Error('ENOSPC: no space left on device');
    files.write(pod);
  };
  const remove: KeptPods['remove'] = (podUID) => {
    if (isDiskFull) throw new Error('EIO: i/o error');
    files.remove(podUID);
  };
  const agent = createPodDevices({
    kept: { ...files, write, remove },
    keeper: createKeeperFiles(join(folder, 'run')),
    recordOf: (namespace, podName) => records.get(`${namespace}/${podName}`),
    areRecordsKnown: () => areRecordsKnown,
    isPodGone: () => isPodGone(),
    isRecordGone: async () => isRecordGone?.() ?? true,
    cluster: () => cluster,
    writeStatus: async ({ metadata: { namespace, name } }, patch) => change(`${namespace}/${name}`, patch),
    onUp: (seconds, identity) => void ups.push([identity, seconds]),
    logger,
  });
  agents.push(agent);
  return agent;
};
/** A JSON Merge Patch of the status. */
const change = (key: string, patch: NodeStatusPatch | TailnetDevice['status']): void => {
  const record = records.get(key)!;
  const status = Object.entries({ ...record.status, ...patch }).filter(([, value]) => value !== null);
  records.set(key, { ...record, status: Object.fromEntries(status) });
};
const record = (name = 'web-0', podUID = POD): void => {
  records.set(`shop/${name}`, {
    ...{ apiVersion: 'net.unbounded-cloud.io/v1alpha1', kind: 'TailnetDevice', metadata: { name, namespace: 'shop' } },
    spec: {
      ...{ node: 'n1', pod: name, podUID, hostName: `k8s-shop-${name}`, tags: ['tag:k8s-pod'] },
      controlURL: 'https://tailnet.example.com',
    },
  });
};
interface ProcessOptions {
  readonly hangs?: boolean;
  /** Its answer with all peers is longer than what is read. */
  readonly hasManyPeers?: boolean;
}
/** The device's process: it logs in by any key, unless it hangs. */
const startProcess = (
  podUID = POD,
  { hangs = false, hasManyPeers = false }: ProcessOptions = {},
): { keys: string[]; requests: number } => {
  const seen: { keys: string[]; requests: number } = { keys: [], requests: 0 };
  const server = createServer((request, response) => {
    seen.requests++;
    if (hangs) return;
    if (hasManyPeers && request.url?.endsWith('?peers=true')) return void response.end(Buffer.alloc(9 << 20, ' '));
    void text(request).then((body) => {
      if (request.url?.endsWith('/start')) seen.keys.push((JSON.parse(body) as { AuthKey: string }).AuthKey);
      const isIn = seen.keys.length > 0;
      const self = { ID: `n${seen.keys.length}`, DNSName: 'web-0.example.ts.net.' };
      const status = isIn
        ? { BackendState: 'Running', TailscaleIPs: ADDRESSES, Self: self }
        : { BackendState: 'NeedsLogin', TailscaleIPs: [], Self: {} };
      response.end(JSON.stringify(status));
    });
  });
  mkdirSync(podFolder(podUID), { recursive: true });
  server.listen(join(podFolder(podUID), 'tailscaled.sock'));
  servers.push(server);
  return seen;
};
/** As the registrar does, for whatever is asked. */
const giveKeys = async (key: string, authKey: string): Promise<void> => {
  const publicKey = await until('a key is asked for', () => records.get(key)?.status?.keyRequest?.publicKey);
  const sealed = await sealKey(authKey, publicKey, records.get(key)!.spec.podUID);
  change(key, { sealedKey: { publicKey, sealed, expiresAt: '2026-01-01T00:05:00Z' } });
};
const added = (name = 'web-0', podUID = POD, netns = '/run/netns/a') => ({
  ...{ podUID, namespace: 'shop', podName: name, container: { id: `c-${netns}`, netns } },
});
/** Only a defect makes it wait in full. */
const within = (): AbortSignal => AbortSignal.timeout(45_000);
/** A request whose caller gives it up when the test says so. */
const patiently = (agent: PodDevices, pod: ReturnType<typeof added>, start: StartPolicy) => {
  const caller = new AbortController();
  let isOver = false;
  const end = agent.add(pod, start, caller.signal).finally(() => void (isOver = true));
  // Its end may come while the test waits for something else.
  end.catch(() => undefined);
  return {
    get isOver() {
      return isOver;
    },
    givenUp(): Promise<unknown> {
      caller.abort();
      return end;
    },
  };
};
/** An agent with a pod whose device is up. */
const withDevice = async (): Promise<PodDevices> => {
  record();
  startProcess();
  const agent = startAgent();
  const adding = agent.add(added(), 'WaitForDevice', within());
  await giveKeys('shop/web-0', 'tskey-1');
  await adding;
  return agent;
};
const unit = (podUID = POD) => {
  const file = join(unitsDir(), `${podUID}.json`);
  return existsSync(file) ? deviceUnit.read(file) : undefined;
};

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tailnet-'));
  [records, areRecordsKnown, isKeeperAway, isDiskFull] = [new Map(), true, false, false];
  [agents, servers, ups] = [[], [], []];
  isPodGone = async () => false;
  isRecordGone = undefined;
  cluster = [];
  for (const one of [unitsDir(), statesDir()]) mkdirSync(one, { recursive: true });
  keeping = setInterval(tendOnce, 10);
});
afterEach(async () => {
  clearInterval(keeping);
  const stops = agents.map((agent) => agent.stop());
  // An agent waits for what it has asked.
  for (const server of servers) {
    server.closeAllConnections();
    server.close();
  }
  await Promise.all(stops);
  rmSync(folder, { recursive: true });
});

describe('a pod', () => {
  test('that starts at once waits for its network alone, whatever is away', async () => {
    const { pod } = await startAgent().add(added(), 'Immediate', within());
    expect(pod.addresses).toEqual([]);
    expect(unit()).toMatchObject({ netns: '/run/netns/a', network: { addresses: [] } });
    expect(unit()?.device).toBeUndefined();
    expect(statSync(podFolder()).mode & 0o777).toBe(0o700);
  });

  test('does not start while its network does not stand', async () => {
    isKeeperAway = true;
    const adding = patiently(startAgent(), added(), 'Immediate');
    await until('the keeper is asked for it', unit);
    await expect(adding.givenUp()).rejects.toThrow('pod shop/web-0: tailnet-registrar has made no record of it yet');
  });

  test('that waits for its device starts when that has its addresses, by a key that was used once', async () => {
    record();
    const process = startProcess();
    const adding = startAgent().add(added(), 'WaitForDevice', within());
    await giveKeys('shop/web-0', 'tskey-1');
    const { pod, isUp, hostName } = await adding;
    expect([pod.addresses, isUp, hostName]).toEqual([ADDRESSES, true, 'k8s-shop-web-0']);
    expect(process.keys).toEqual(['tskey-1']);
    await until('the record says so', () => records.get('shop/web-0')?.status?.state === 'Running');
    expect(records.get('shop/web-0')?.status).toMatchObject({ reportedID: 'n1', addresses: ADDRESSES });
    expect(records.get('shop/web-0')?.status?.keyRequest).toBeUndefined();
    expect(readFileSync(join(podFolder(), 'metadata.json'), 'utf8')).not.toContain('tskey');
  });

  test('starts in a tailnet of so many peers that the list of them is not read', async () => {
    record();
    startProcess(POD, { hasManyPeers: true });
    const adding = startAgent().add(added(), 'WaitForDevice', AbortSignal.timeout(30_000));
    await giveKeys('shop/web-0', 'tskey-1');
    await expect(adding).resolves.toMatchObject({ isUp: true });
  });

  test('is told what it waits for when the time is over', async () => {
    record();
    startProcess();
    const agent = startAgent();
    const adding = patiently(agent, added(), 'WaitForDevice');
    await until('it says what it waits for', () => agent.list()[0]?.problem.includes('key'));
    await expect(adding.givenUp()).rejects.toThrow('it waits for a key from tailnet-registrar');
    // Its identity stays: the next try may be luckier.
    expect([agent.list().length, unit()?.netns, existsSync(podFolder())]).toEqual([1, '/run/netns/a', true]);
    expect(agent.observe().pendingRemovals).toBe(0);
  });

  test('waits for no other one, whose process hangs', async () => {
    const agent = startAgent();
    record('slow-0', 'slow');
    const process = startProcess('slow', { hangs: true });
    const slow = patiently(agent, added('slow-0', 'slow', '/run/netns/b'), 'WaitForDevice');
    await until('its process is asked', () => process.requests > 0);
    await expect(agent.add(added(), 'Immediate', within())).resolves.toMatchObject({ hasNetwork: true });
    expect([slow.isOver, process.requests]).toEqual([false, 1]);
    await expect(slow.givenUp()).rejects.toThrow('shop/slow-0');
  });
});

describe('a container', () => {
  test('that ends leaves the identity, and the next one of the pod has it', async () => {
    const agent = await withDevice();
    agent.release('c-/run/netns/a');
    await until('the keeper has nothing to do', () => unit() === undefined);
    expect(existsSync(podFolder())).toBe(true);
    const next = await agent.add(added('web-0', POD, '/run/netns/b'), 'WaitForDevice', within());
    expect([next.pod.addresses, unit()?.netns]).toEqual([ADDRESSES, '/run/netns/b']);
    agent.release('c-/run/netns/a'); // comes late
    await delay(150);
    expect([unit()?.netns, agent.byContainer('c-/run/netns/b')?.pod.podUID]).toEqual(['/run/netns/b', POD]);
  });
});

describe('a full disk', () => {
  test('refuses a pod by its name, and leaves nothing of it', async () => {
    isDiskFull = true;
    const agent = startAgent();
    await expect(agent.add(added(), 'Immediate', within())).rejects.toThrow('ENOSPC');
    expect([agent.list(), unit(), agent.startOf(POD)]).toEqual([[], undefined, undefined]);
    isDiskFull = false;
    await expect(agent.add(added(), 'Immediate', within())).resolves.toMatchObject({ hasNetwork: true });
  });

  test('keeps no container that is gone, and the next one starts when there is room', async () => {
    const agent = await withDevice();
    isDiskFull = true;
    expect(() => agent.release('c-/run/netns/a')).not.toThrow();
    await until('the keeper has nothing to do', () => unit() === undefined);
    expect(agent.byContainer('c-/run/netns/a')).toBeUndefined();
    const next = added('web-0', POD, '/run/netns/b');
    await expect(agent.add(next, 'WaitForDevice', within())).rejects.toThrow('ENOSPC');
    isDiskFull = false;
    const { pod } = await agent.add(next, 'WaitForDevice', within());
    expect([pod.addresses, unit()?.netns]).toEqual([ADDRESSES, '/run/netns/b']);
  });

  test('that has room again has what was released meanwhile', async () => {
    const agent = await withDevice();
    isDiskFull = true;
    agent.release('c-/run/netns/a');
    await expect.poll(() => agent.list()[0]?.problem, { timeout: 45_000 }).toContain('ENOSPC');
    isDiskFull = false;
    agent.onRecord(records.get('shop/web-0')!);
    await until('it is kept', () => !readFileSync(join(podFolder(), 'metadata.json'), 'utf8').includes('/run/netns/a'));
  });
});

describe('an agent after another', () => {
  test('knows the pods, and asks for the same', async () => {
    const first = await withDevice();
    await first.stop();
    const before = unit();
    const next = startAgent();
    await until('it has found the device', () => next.byContainer('c-/run/netns/a')?.isUp);
    expect([unit(), next.startOf(POD)]).toEqual([before, 'WaitForDevice']);
  });

  test('leaves devices as they are while it knows no records', async () => {
    const first = await withDevice();
    await first.stop();
    const before = unit();
    records.clear();
    areRecordsKnown = false;
    const next = startAgent();
    await until('it has found the device', () => next.byContainer('c-/run/netns/a')?.isUp);
    await next.tidy();
    expect(unit()).toEqual(before);
  });

  test('asks for no other network while it does not know the blocks of the cluster', async () => {
    cluster = [parsePrefix('100.65.0.0/16')];
    const first = startAgent();
    await first.add(added(), 'Immediate', within());
    await first.stop();
    const before = unit();
    expect(before?.network.routes).toContainEqual(expect.objectContaining({ to: '100.65.0.0/16', kind: 'throw' }));
    cluster = undefined;
    const adding = patiently(startAgent(), added('web-1', 'another'), 'Immediate');
    await delay(300);
    expect([unit(), adding.isOver]).toEqual([before, false]);
    await expect(adding.givenUp()).rejects.toThrow('shop/web-1');
    expect(unit('another')).toBeUndefined();
  });

  test('leaves what it cannot read where it is', () => {
    mkdirSync(podFolder('odd'), { recursive: true });
    writeFileSync(join(podFolder('odd'), 'metadata.json'), '{');
    writeFileSync(join(podFolder('odd'), 'tailscaled.state'), 'identity');
    expect(startAgent().list()).toEqual([]);
    expect(existsSync(join(podFolder('odd'), 'tailscaled.state'))).toBe(true);
  });
});

describe('for operators', () => {
  const states = (agent: PodDevices) => agent.observe().devices.map(({ state }) => state);

  test('a device is what it waits for, until it is up; its first login and the next container are told apart', async () => {
    const agent = startAgent();
    const beganMs = performance.now();
    await agent.add(added(), 'Immediate', within());
    expect(states(agent)).toEqual(['NoRecord']);
    record();
    startProcess();
    await until('it asks for a key', () => states(agent)[0] === 'NeedsLogin');
    expect(ups).toEqual([]);
    await giveKeys('shop/web-0', 'tskey-1');
    await until('it is up', () => ups.length > 0);
    expect(agent.observe()).toMatchObject({
      devices: [{ podUID: POD, state: 'Running', keeper: { starts: 1 } }],
      pendingRemovals: 0,
    });
    agent.release('c-/run/netns/a');
    await until('it has no container', () => states(agent)[0] === 'NoContainer');
    await agent.add(added('web-0', POD, '/run/netns/b'), 'WaitForDevice', within());
    await until('it is up again', () => ups.length > 1);
    expect(ups.map(([identity]) => identity)).toEqual(['new', 'kept']);
    const mostSeconds = (performance.now() - beganMs) / 1000;
    for (const [, seconds] of ups) expect([seconds > 0, seconds < mostSeconds]).toEqual([true, true]);
  });

  test('what an agent before this one has brought up is not counted again', async () => {
    const first = await withDevice();
    await until('it is up', () => ups.length === 1);
    await first.stop();
    const next = startAgent();
    await until('it has found the device', () => states(next)[0] === 'Running');
    expect(ups).toHaveLength(1);
  });

  test('a device that is to be removed counts until nothing is left of it', async () => {
    const agent = await withDevice();
    isKeeperAway = true;
    records.clear();
    expect(agent.observe().pendingRemovals).toBe(1);
    await agent.tidy();
    await until('the keeper is to end it', () => unit() === undefined);
    expect(agent.observe()).toEqual({ devices: [], pendingRemovals: 1 });
    isKeeperAway = false;
    await until('nothing is left', () => agent.observe().pendingRemovals === 0);
    expect(existsSync(podFolder())).toBe(false);
  });
});

describe('what is kept of a pod', () => {
  const run = async (): Promise<PodDevices> => {
    record();
    const agent = startAgent();
    await agent.add(added(), 'Immediate', within());
    await until('it is known that there is a record', () => agent.list()[0]?.pod.device);
    return agent;
  };

  test('goes with its record, after its process', async () => {
    const agent = await run();
    writeFileSync(join(podFolder(), 'tailscaled.state'), 'identity');
    isKeeperAway = true;
    records.clear();
    await agent.tidy();
    await until('the keeper is to end it', () => unit() === undefined);
    expect(existsSync(podFolder())).toBe(true);
    isKeeperAway = false;
    await until('nothing is left', () => !existsSync(podFolder()));
    expect(agent.list()).toEqual([]);
  });

  test('keeps the pod from being added again until nothing is left of it', async () => {
    const agent = await run();
    isKeeperAway = true;
    records.clear();
    await agent.tidy();
    await until('the keeper is to end it', () => unit() === undefined);
    await expect(agent.add(added(), 'Immediate', within())).rejects.toThrow('its former device is being removed');
    expect(unit()).toBeUndefined();
    isKeeperAway = false;
    await until('nothing is left', () => !existsSync(podFolder()) && agent.observe().pendingRemovals === 0);
    await agent.add(added(), 'Immediate', within());
    await agent.tidy();
    expect([agent.list().length, existsSync(podFolder())]).toEqual([1, true]);
  });

  test('stays where the keeper has left a state that cannot be read', () => {
    const keeper = createKeeperFiles(join(folder, 'run'));
    isKeeperAway = true;
    writeFileSync(join(statesDir(), `${POD}.json`), 'half a st');
    expect([keeper.stateOf(POD), keeper.hasEnded(POD)]).toEqual([undefined, false]);
    rmSync(join(statesDir(), `${POD}.json`));
    expect(keeper.hasEnded(POD)).toBe(true);
  });

  test.each<[what: string, make: () => void]>([
    ['the API server is away', () => (areRecordsKnown = false)],
    ['it has a record', () => record()],
    ['it has a record that the cache lacks', () => (isRecordGone = async () => false)],
    ['the API server cannot say that it has none', () => (isRecordGone = () => Promise.reject(new Error('away')))],
  ])('stays while %s', async (_, make) => {
    const agent = await run();
    records.clear();
    make();
    await agent.tidy();
    await delay(100);
    expect([agent.list().length, existsSync(podFolder())]).toEqual([1, true]);
  });

  test('goes with its pod where it never had a record, and not before', async () => {
    const agent = startAgent();
    await agent.add(added(), 'Immediate', within());
    isPodGone = () => Promise.reject(new Error('the API server is away'));
    await agent.tidy();
    isPodGone = async () => false;
    await agent.tidy();
    expect(existsSync(podFolder())).toBe(true);
    isPodGone = async () => true;
    await agent.tidy();
    await until('nothing is left', () => !existsSync(podFolder()));
  });

  test('is removed later where it cannot be now, and counts until then', async () => {
    const agent = await run();
    isDiskFull = true;
    records.clear();
    await agent.tidy();
    await until('the keeper is to end it', () => unit() === undefined);
    await delay(100);
    expect([existsSync(podFolder()), agent.observe().pendingRemovals]).toEqual([true, 1]);
    isDiskFull = false;
    await agent.tidy();
    await until('nothing is left', () => !existsSync(podFolder()) && agent.observe().pendingRemovals === 0);
  });

  test('is not that of another pod of the same name', async () => {
    const agent = await run();
    record('web-0', 'another');
    await agent.tidy();
    await until('nothing is left', () => !existsSync(podFolder()));
    expect(agent.list()).toEqual([]);
  });
});
