import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createNftables } from '@unbounded/nftables';
import { createLogger, createMetrics } from '@unbounded/telemetry';
import { until } from '@unbounded/testing';
import { cleanUp } from '../../agent/cleanup.ts';
import { createPodRegistry, type PodAttachment } from '../pods.ts';
import { hookedPods } from '../hooks.ts';
import { startCniServer } from '../server.ts';
import { EARLIER, GATEWAY, HONEST, type Host, NEIGHBOR, POD, REMOTE, UNBRIDGED } from './attempts.testdata.ts';
import { createBridgePorts } from './bridge-ports.ts';
import { cni, DRIFTS, portsIn } from './guard-cni.testdata.ts';
import {
  canPing,
  makeBridge,
  makeNetwork,
  makePlainBridge,
  net,
  type Network,
  pings,
  prepareNode,
  run,
  within,
} from './guard-network.testdata.ts';
import { sentinelsOf, tryAll, tryHostile } from './guard-sending.testdata.ts';
import { createSourceGuard } from './source-guard.ts';

/**
 * A node's bridge with pods that send what they like, first as it was without a guard, then with it; pods come by the real CNI
 * plug-in (source-guard.kernel.spec.ts starts this in a network and a mount namespace of its own). Prints JSON.
 */

export interface Report {
  /** Of the hostile attempts without the guard: those that reached anybody, or taught the bridge a MAC. */
  readonly unguarded: readonly boolean[];
  readonly hostile: readonly boolean[];
  readonly honest: readonly boolean[];
  /** Dropped frames by reason after all of them, as the metric has it. */
  readonly dropped: Readonly<Record<string, number>>;
  readonly notes: readonly string[];
  /** Pings that others sent meanwhile and that were lost. */
  readonly lostPings: readonly string[];
  /** Whether a neighbor of the pod attached before, and the pod itself with another MAC, get through: with what is theirs, and with what is not. */
  readonly earlier: { readonly own: boolean; readonly stolen: boolean };
  readonly otherMac: { readonly during: boolean; readonly after: boolean };
  /** IPv4 and IPv6 of nobody from a port that is in no bridge: with the kernel's own settings of it, and after the next pass. */
  readonly unbridged: { readonly open: readonly boolean[]; readonly closed: readonly boolean[] };
  /** What CHECK said after each change by others, and after the next pass. */
  readonly drifts: Readonly<Record<string, { readonly changed: string; readonly repaired: string }>>;
  /** Lines of the log of a pass at rest, and of the first pass of a successor. */
  readonly secondWrote: readonly string[];
  readonly successorWrote: readonly string[];
  readonly addAfterFlush: { readonly code: number; readonly ports: number };
  readonly addWithoutPort: { readonly code: number; readonly error: number; readonly registered: number };
  /** Ports after DEL, and after another one. */
  readonly afterDel: readonly number[];
  readonly problems: readonly string[];
  readonly strangers: readonly (readonly string[])[];
  readonly tablesAfterCleanup: string;
}

const folder = mkdtempSync(join(tmpdir(), 'guard-'));
const podsFile = join(folder, 'pods.json');
const socket = join(folder, 'cni.sock');
const lines: string[] = [];
const logger = createLogger({
  name: 'test',
  level: 'info',
  destination: { write: (line: string) => void lines.push(line) },
});
const taken = (): string[] => lines.splice(0).map((line) => (JSON.parse(line) as { msg: string }).msg);
const add = (name: string, host: Host, veth: string) => cni(socket, 'ADD', name, { ...host, veth });

const tryUnguarded = async (): Promise<boolean[]> => {
  using network = await makeNetwork(makePlainBridge);
  return await tryHostile(network);
};

prepareNode();
const unguarded = await tryUnguarded();
const network: Network = await makeNetwork(makeBridge); // goes with the namespace
const others = [
  [network.neighbor, [EARLIER, GATEWAY, REMOTE]],
  [network.earlier, [NEIGHBOR, REMOTE]],
] as const;
// Link-local addresses are being tried out still, and the first packets ask for MACs.
for (const [ns, targets] of others)
  for (const { v4, v6 } of targets) await until(`${v4} and ${v6} answer`, () => canPing(ns, v4) && canPing(ns, v6));

const before: PodAttachment = {
  ...{ namespace: 'default', name: 'earlier', uid: '', containerId: 'earlier', netns: '/run/netns/earlier' },
  ...{ interface: 'eth0', hostVeth: 'veth2', addresses: [`${EARLIER.v4}/24`, `${EARLIER.v6}/64`] },
};
writeFileSync(podsFile, JSON.stringify({ 'earlier/eth0': before }));
const pods = createPodRegistry(podsFile);
const metrics = createMetrics();
await using nft = createNftables();
const guard = createSourceGuard({ net, nft, pods, logger, metrics });
const problems = [...(await guard.ensure())];
const pass = async (): Promise<void> => void problems.push(...(await guard.ensure()));
const annotationsOf = (): Promise<never> => Promise.reject(new Error('no API server'));
const server = await startCniServer(socket, {
  pods: hookedPods({ hooks: [], ports: guard, registered: () => pods.list(), annotationsOf, logger }),
  gate: { isOpen: true },
  logger: createLogger({ name: 'test', level: 'error' }),
});

const attachPods = async (): Promise<string[]> => {
  for (const { code, output } of [await add('pod', POD, 'veth0'), await add('neighbor', NEIGHBOR, 'veth1')])
    if (code !== 0) throw new Error(output);
  await pass();
  taken();
  await guard.ensure();
  return taken();
};

const attack = async (): Promise<Pick<Report, 'hostile' | 'lostPings' | 'notes' | 'dropped' | 'honest'>> => {
  const running: Promise<string>[] = [];
  const hostile = await tryHostile(network, () => {
    for (const [ns, targets] of others) for (const { v4, v6 } of targets) running.push(pings(ns, v4), pings(ns, v6));
  });
  const lostPings = (await Promise.all(running)).filter((output) => !output.includes('300 received'));
  await pass();
  const notes = guard.takeNotes();
  const counted = (await metrics.render()).matchAll(/^unbounded_pod_frames_dropped_total\{reason="(\w+)"\} (\d+)/gm);
  const dropped = Object.fromEntries([...counted].map(([, reason, count]) => [reason!, Number(count)]));
  const makes = HONEST.map(([, make]) => make);
  const honest = await tryAll(network, { from: network.pod, makes, sentinels: sentinelsOf(POD) });
  return { hostile, lostPings, notes, dropped, honest };
};

const tryEarlier = async (): Promise<Report['earlier']> => {
  const makes = [sentinelsOf(EARLIER)[0]!, sentinelsOf({ ...EARLIER, v4: POD.v4 })[0]!];
  const sentinels = sentinelsOf(POD);
  const [own, stolen] = await tryAll(network, { from: network.earlier, makes, sentinels, by: network.pod });
  return { own: own!, stolen: stolen! };
};

const tryOtherMac = (): Report['otherMac'] => {
  const setMac = (mac: string): string => within(network.pod, 'ip', 'link', 'set', 'eth0', 'address', mac);
  setMac('02:00:00:00:00:77');
  const during = canPing(network.pod, NEIGHBOR.v4) || canPing(network.pod, GATEWAY.v4);
  setMac(POD.mac);
  return { during, after: canPing(network.pod, NEIGHBOR.v4) && canPing(network.pod, GATEWAY.v4) };
};

const tryUnbridged = async (): Promise<Report['unbridged']> => {
  const makes = UNBRIDGED((await net.links.get('veth0'))!.mac!);
  const tryNow = async (): Promise<boolean[]> => {
    run('ip', 'link', 'set', 'veth0', 'nomaster');
    const sentinels = sentinelsOf(NEIGHBOR);
    const arrived = await tryAll(network, { from: network.pod, makes, sentinels, by: network.neighbor });
    run('ip', 'link', 'set', 'veth0', 'master', 'cbr0');
    return arrived;
  };
  writeFileSync('/proc/sys/net/ipv4/conf/veth0/rp_filter', '0');
  writeFileSync('/proc/sys/net/ipv6/conf/veth0/disable_ipv6', '0');
  const open = await tryNow();
  await pass();
  return { open, closed: await tryNow() };
};

const drift = async (): Promise<Report['drifts']> => {
  const drifts: Record<string, { changed: string; repaired: string }> = {};
  for (const [what, command] of Object.entries(DRIFTS)) {
    run('nft', ...command);
    const changed = (await cni(socket, 'CHECK', 'pod')).output;
    await pass();
    drifts[what] = { changed, repaired: (await cni(socket, 'CHECK', 'pod')).output };
  }
  return drifts;
};

const succeed = async (): Promise<string[]> => {
  taken();
  const parts = { net, nft, pods: createPodRegistry(podsFile), logger, metrics: createMetrics() };
  await createSourceGuard(parts).ensure();
  return taken();
};

const attachAndDetach = async (): Promise<Pick<Report, 'addAfterFlush' | 'addWithoutPort' | 'afterDel'>> => {
  run('nft', 'flush', 'ruleset');
  const addAfterFlush = { code: (await add('pod', POD, 'veth0')).code, ports: portsIn() };
  const { code, output } = await add('nowhere', { ...POD, v4: '100.65.30.9' }, 'veth9');
  const { code: error } = JSON.parse(output) as { code: number };
  const addWithoutPort = { code, error, registered: pods.list().length };
  const afterDel: number[] = [];
  for (let times = 0; times < 2; times++) afterDel.push((await cni(socket, 'DEL', 'pod')).code === 0 ? portsIn() : -1);
  return { addAfterFlush, addWithoutPort, afterDel };
};

const findStrangers = async (): Promise<string[][]> => {
  let clock = 0;
  const bridgePorts = createBridgePorts(net, pods, () => clock);
  const strangers: string[][] = [];
  for (clock of [0, 9_999, 10_000]) strangers.push((await bridgePorts.find()).problems.map(({ message }) => message));
  return strangers;
};

const clean = async (): Promise<string> => {
  await server.close();
  const [cniConfDir, cniBinDir, cniReservationsDir, unitsDir, stateDir] = [folder, folder, folder, folder, folder];
  const bpffsDir = join(folder, 'unbounded/v1');
  const cniSocket = join(folder, 'cni.sock');
  await cleanUp({ cniConfDir, cniSocket, cniBinDir, cniReservationsDir, unitsDir, stateDir, bpffsDir }, () => {});
  return run('nft', 'list', 'tables');
};

const report: Report = {
  unguarded,
  secondWrote: await attachPods(),
  ...(await attack()),
  earlier: await tryEarlier(),
  otherMac: tryOtherMac(),
  unbridged: await tryUnbridged(),
  drifts: await drift(),
  successorWrote: await succeed(),
  ...(await attachAndDetach()),
  strangers: await findStrangers(),
  problems: problems.map(({ message }) => message),
  tablesAfterCleanup: await clean(),
};
console.log(JSON.stringify(report));
net.close();
