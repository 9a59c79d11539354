import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { generatePrivateKey, publicKeyOf } from '@unbounded/wireguard';
import { type EchoNetwork, echoThrough, layEchoNetwork, NODE_ADDRESS } from './echo-network.ts';
import { type Probed, PROBE_EVERY_MS, probeOf, type ProbingThread, startProbing } from './echo-thread.ts';
import { median, ROUNDS } from './rounds.ts';

/** What echoes cost: processor time of the agent's thread with probes alone, and with echoes beside them, in turns. See ../README.md. */

const PEERS = 50;
const TURN_MS = 3000;
/** The kernel takes up to a second to see that somebody is attached to the TUN. */
const SETTLE_MS = 1200;
/** Code is compiled by then. */
const WARM_UP_MS = 20_000;
const MOST_PERCENT = 1;
/** Less is another measurement: what was lost cost nothing. */
const LEAST_RETURNED = 0.98;

/** Peers probe and answer in a process of their own, whose time is not the node's. */
const startPeers = async (network: EchoNetwork, nodePublicKey: string, folder: string) => {
  const child = fork(new URL('./echo-peers.ts', import.meta.url));
  child.send({ count: PEERS, netnsPath: network.gateways.path, nodePublicKey, folder });
  const [peers] = (await once(child, 'message')) as [Probed[]];
  return {
    peers,
    async [Symbol.asyncDispose]() {
      child.send('stop');
      await once(child, 'exit');
    },
  };
};

/** Percent of a processor. */
interface Round {
  readonly alone: number;
  readonly withEchoes: number;
}

/** Of the whole process, which does nothing else: what the collector of garbage does in other threads counts too. */
const takeTurn = async (): Promise<number> => {
  const [began, before] = [performance.now(), process.cpuUsage()];
  await delay(TURN_MS);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / (performance.now() - began) / 10;
};

const checkReturned = (returned: number): void => {
  const sent = (PEERS * TURN_MS) / PROBE_EVERY_MS;
  if (returned < LEAST_RETURNED * sent) throw new Error(`${returned} of ${sent} echoes came back`);
};

type Plan = Parameters<ProbingThread['apply']>[0];

/** One with echoes on either side of two without: what becomes slower or faster in the meantime does so for both. */
const takeRound = async (thread: ProbingThread, alone: Plan, withEchoes: Plan): Promise<Round> => {
  const turnOf = async (plan: Plan): Promise<number> => {
    await thread.apply(plan);
    await delay(SETTLE_MS);
    return takeTurn();
  };
  const turnWithEchoes = async (): Promise<number> => {
    const before = thread.counts.echoesReturned;
    const percent = await turnOf(withEchoes);
    checkReturned(thread.counts.echoesReturned - before);
    return percent;
  };
  const first = await turnWithEchoes();
  const between = [await turnOf(alone), await turnOf(alone)];
  const last = await turnWithEchoes();
  return { alone: (between[0]! + between[1]!) / 2, withEchoes: (first + last) / 2 };
};

const print = (rounds: readonly Round[]): void => {
  const more = rounds.map(({ alone, withEchoes }) => withEchoes - alone);
  const percents = [rounds.map(({ alone }) => alone), rounds.map(({ withEchoes }) => withEchoes), more];
  const cells = percents.map((each) => median(each).toFixed(2));
  console.log(`Percent of a processor, ${PEERS} peers, every ${PROBE_EVERY_MS} ms, ${rounds.length} rounds.\n`);
  console.log('| probes alone | and echoes | more | least - greatest | target |');
  console.log('|---|---|---|---|---|');
  const spread = `${Math.min(...more).toFixed(2)} - ${Math.max(...more).toFixed(2)}`;
  console.log(`| ${[...cells, spread, MOST_PERCENT].join(' | ')} |`);
  if (median(more) > MOST_PERCENT) process.exitCode = 1;
};

const folder = mkdtempSync(join(tmpdir(), 'echoes-'));
try {
  using network = await layEchoNetwork(PEERS);
  const privateKey = generatePrivateKey();
  await using peersProcess = await startPeers(network, publicKeyOf(privateKey), folder);
  const { peers } = peersProcess;
  const thread = startProbing(privateKey, network.node.fd, join(folder, 'health.json'));
  const probes = peers.map((peer) => probeOf(peer, NODE_ADDRESS));
  const alone: Plan = { probes, echoes: [] };
  const withEchoes: Plan = {
    probes,
    echoes: peers.map(({ node }, index) => echoThrough(node, index)),
    echoDevice: network.echoDevice,
  };
  await thread.apply(withEchoes);
  await delay(WARM_UP_MS);
  const rounds: Round[] = [];
  for (let round = 0; round < ROUNDS; round++) rounds.push(await takeRound(thread, alone, withEchoes));
  await thread.stop();
  print(rounds);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
