import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createNetns, type Netns } from '@unbounded/netlink';
import { createMetrics, type Metrics, silentLogger } from '@unbounded/telemetry';
import type { ProbePlan } from '@unbounded/topology';
import { generatePrivateKey, publicKeyOf } from '@unbounded/wireguard';
import { type Health, startHealth } from './health.ts';
import type { Family, HealthPlan } from './messages.ts';

/** For the tests: nodes on one switch, each in a network of its own and with a thread that probes in it. */

export const PORT = 9997;
export const INTERVAL_MS = 100;
const MULTIPLIER = 3;

/** What is in the kernel changes without a word to the test. */
const LOOK_EVERY_MS = 5;
const LATE_MS = 45_000;

export interface TestNode {
  readonly name: string;
  readonly netns: Netns;
  readonly publicKey: string;
  readonly addresses: Readonly<Record<Family, string>>;
  readonly metrics: Metrics;
  health: Health;
  /** Starts the thread (again). */
  start(mapPin?: string): Health;
  /** Waits until it is so; the time that took, ms. @throws Error when it takes too long */
  until(isSo: (health: Health) => boolean): Promise<number>;
  run(...argv: string[]): string;
  /** With this as its standard input. */
  feed(input: string, ...argv: string[]): string;
  /** Drops what comes in and matches. */
  block(...match: string[]): void;
  unblock(): void;
}

export interface TestNodes extends AsyncDisposable {
  readonly folder: string;
  readonly nodes: readonly TestNode[];
}

const feedIn = (netns: Netns, input: string, argv: readonly string[]): string =>
  execFileSync('nsenter', [`--net=${netns.path}`, ...argv], { encoding: 'utf8', input });
const runIn = (netns: Netns, ...argv: string[]): string => feedIn(netns, '', argv);

/** Of waits that a test left unfinished. */
const stopLooking = new Set<() => void>();

const makeNode = (name: string, number: number, folder: string): TestNode => {
  const privateKey = generatePrivateKey();
  const netns = createNetns();
  const metrics = createMetrics();
  let look = (): void => undefined;
  const node: TestNode = {
    name,
    netns,
    publicKey: publicKeyOf(privateKey),
    addresses: { 4: `10.9.0.${number}`, 6: `fd09::${number}` },
    metrics,
    health: undefined as unknown as Health,
    start(mapPin) {
      node.health = startHealth({
        keys: { current: privateKey },
        port: PORT,
        stateFile: join(folder, name, 'health.json'),
        netnsFd: netns.fd,
        ...(mapPin === undefined ? {} : { groups: { mapPin } }),
        logger: silentLogger,
        metrics,
        onChange: () => look(),
      });
      return node.health;
    },
    until(isSo) {
      const began = performance.now();
      const { promise, resolve, reject } = Promise.withResolvers<number>();
      const looking = setInterval(() => look(), LOOK_EVERY_MS);
      const late = setTimeout(() => {
        stop();
        reject(new Error(`not within ${LATE_MS} ms: what is waited for at ${name}`));
      }, LATE_MS);
      const stop = (): void => {
        clearInterval(looking);
        clearTimeout(late);
      };
      look = () => {
        if (!isSo(node.health)) return;
        stop();
        look = () => undefined;
        resolve(performance.now() - began);
      };
      stopLooking.add(stop);
      return promise;
    },
    run: (...argv) => runIn(netns, ...argv),
    feed: (input, ...argv) => feedIn(netns, input, argv),
    block: (...match) => void runIn(netns, 'nft', 'add', 'rule', 'inet', 't', 'in', ...match, 'drop'),
    unblock: () => void runIn(netns, 'nft', 'flush', 'chain', 'inet', 't', 'in'),
  };
  return node;
};

export const makeNodes = (...names: readonly string[]): TestNodes => {
  const folder = mkdtempSync(join(tmpdir(), 'health-'));
  const hub = createNetns();
  runIn(hub, 'ip', 'link', 'add', 'switch', 'up', 'type', 'bridge');
  const nodes = names.map((name, index) => makeNode(name, index + 1, folder));
  for (const { name, netns, addresses } of nodes) {
    const run = (...argv: string[]): string => runIn(netns, ...argv);
    run('ip', 'link', 'add', 'wire', 'type', 'veth', 'peer', 'name', name, 'netns', hub.path);
    run('ip', 'addr', 'add', `${addresses[4]}/24`, 'dev', 'wire');
    run('ip', 'addr', 'add', `${addresses[6]}/64`, 'dev', 'wire', 'nodad');
    run('ip', 'link', 'set', 'wire', 'up');
    runIn(hub, 'ip', 'link', 'set', 'dev', name, 'up', 'master', 'switch');
    run('nft', 'add table inet t; add chain inet t in { type filter hook input priority 0; }');
  }
  return {
    folder,
    nodes,
    async [Symbol.asyncDispose]() {
      for (const stop of stopLooking) stop();
      stopLooking.clear();
      for (const { health } of nodes) await (health as Health | undefined)?.stop();
      for (const { netns } of [...nodes, { netns: hub }]) netns.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
};

/** What a node is to do: to probe its peers in both families. */
export const planOf = (node: TestNode, peers: readonly TestNode[], changes: Partial<HealthPlan> = {}): HealthPlan => ({
  probes: peers.flatMap((peer) =>
    ([4, 6] as const).map((family): ProbePlan => ({
      node: peer.name,
      publicKey: peer.publicKey,
      family,
      localAddress: node.addresses[family],
      address: peer.addresses[family],
      intervalMs: INTERVAL_MS,
      detectMultiplier: MULTIPLIER,
    })),
  ),
  groups: [],
  mtuBytes: 1500,
  ...changes,
});

/** Whether a node sees its peers so, in both families; all of them where none is named. */
export const are =
  (state: string, ...names: readonly string[]) =>
  (health: Health): boolean => {
    const seen = health.states().filter(({ node }) => names.length === 0 || names.includes(node));
    return seen.length > 0 && seen.every((peer) => peer.state === state);
  };
