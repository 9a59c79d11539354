import { type Lost, MAX_SITES, type ReachedSites, siteHash } from '@unbounded/health';
import type { Problem } from '@unbounded/topology';
import { createEchoes, type Echoes } from './echoes.ts';
import { createExchange } from './exchange.ts';
import type { GroupKernel } from './group-kernel.port.ts';
import { createGroupOwner } from './group-owner.ts';
import { createMeasuring, type Measuring } from './measuring.ts';
import type { Family, GroupReport, HealthPlan, Measurements, PeerReport, WorkerSettings } from './messages.ts';
import { createPeers, type Peer, type Peers } from './peers.ts';
import { isAnswering } from './problems.ts';
import { createProbeKeys, type NodeKeys } from './probe-keys.ts';
import type { ProbeSockets } from './sockets.ts';
import { openVerdictFile, type Verdict } from './verdict-file.ts';

/** Probes every peer of the plan, and writes next-hop groups as the verdicts say. */
export interface Prober {
  /** Probes as planned and writes the groups; what is not planned any more stays in the kernel until `removeStale`. */
  apply(plan: HealthPlan): Promise<readonly Problem[]>;
  removeStale(): Promise<void>;
  /** Other keys of the node. */
  setKeys(keys: NodeKeys): void;
  /** What there was since the last call; undefined: nothing. */
  measured(): Measurements | undefined;
  /** The groups as they are written; undefined: as at the last call. */
  changedGroups(): readonly GroupReport[] | undefined;
  stop(): Promise<void>;
}

/** Peers whose state or path MTU is another by now, and ids of those that are not probed any more. */
export type OnChanged = (peers: readonly PeerReport[], gone: readonly string[]) => void;

/** Sites as they stand in replies, computed anew only after something changed. */
const createReachedCache = (compute: (family: Family) => readonly string[] | undefined) => {
  const kept = new Map<Family, ReachedSites | undefined>();
  return {
    of(family: Family): ReachedSites | undefined {
      if (kept.has(family)) return kept.get(family);
      const hashes = compute(family)?.map(siteHash);
      const sites = hashes && { hashes: hashes.slice(0, MAX_SITES), truncated: hashes.length > MAX_SITES };
      kept.set(family, sites);
      return sites;
    },
    forget: () => kept.clear(),
  };
};

/** Tells of a peer when something changed that was told before. */
const createReporter = (onChanged: OnChanged) => {
  const told = new Map<string, PeerReport>();
  return {
    report(
      id: string,
      { session: { plan, verdict, rttMs, lossRatio }, pathMtu: { limitBytes }, knowsNextKey, missesEchoes }: Peer,
      forwards: boolean | undefined,
    ): void {
      const before = told.get(id);
      const { state, graceOver } = verdict;
      const isTold =
        before?.state === state &&
        before.pathMtuBytes === limitBytes &&
        before.graceOver === graceOver &&
        before.forwards === forwards &&
        before.knowsNextKey === knowsNextKey &&
        before.missesEchoes === missesEchoes;
      if (isTold) return;
      const now = {
        node: plan.node,
        family: plan.family,
        state,
        graceOver,
        knowsNextKey,
        ...(missesEchoes ? { missesEchoes } : {}),
        ...(before ? { previous: before.state } : {}),
        ...(forwards === undefined ? {} : { forwards }),
        ...(rttMs === undefined ? {} : { rttMs }),
        ...(lossRatio === undefined ? {} : { lossRatio }),
        ...(limitBytes === undefined ? {} : { pathMtuBytes: limitBytes }),
      };
      told.set(id, now);
      onChanged([now], []);
    },
    forget(ids: readonly string[]): void {
      for (const id of ids) told.delete(id);
      if (ids.length > 0) onChanged([], ids);
    },
  };
};

/** Of probes and echoes together. */
const createVerdicts = (peers: Peers, echoes: Pick<Echoes, 'forwards' | 'lost'>) => {
  const whole = (id: string, verdict: Verdict): Verdict =>
    echoes.forwards(id) === false ? { ...verdict, forwards: false } : verdict;
  return {
    of(id: string): Verdict | undefined {
      const verdict = peers.get(id)?.session.verdict;
      return verdict && whole(id, verdict);
    },
    lost(id: string): Lost | undefined {
      const session = peers.get(id)?.session;
      return session && isAnswering(session.verdict) ? echoes.lost(id) : session?.lost();
    },
    all: () => new Map([...peers.verdicts()].map(([id, verdict]) => [id, whole(id, verdict)])),
  };
};

/** Groups when they are others than at the last call. */
const createGroupNews = () => {
  let told = '[]';
  return (reports: readonly GroupReport[]): readonly GroupReport[] | undefined => {
    const text = JSON.stringify(reports);
    if (text === told) return undefined;
    told = text;
    return reports;
  };
};

/** Shares of lost probes that are others than at the last call. */
const createLossNews = () => {
  let told = new Map<string, number>();
  return (peers: Iterable<readonly [string, Peer]>): Map<string, number> => {
    const now = new Map<string, number>();
    for (const [id, { session }] of peers) if (session.lossRatio !== undefined) now.set(id, session.lossRatio);
    const changed = new Map([...now].filter(([id, ratio]) => told.get(id) !== ratio));
    told = now;
    return changed;
  };
};

/** Keys of probes, and the peers that get others with them. */
const createRenewableKeys = (keys: NodeKeys) => {
  let derive = createProbeKeys(keys);
  return {
    derive: (peerKeys: Parameters<typeof derive>[0]) => derive(peerKeys),
    renew: (next: NodeKeys) => void (derive = createProbeKeys(next)),
  };
};

const withLosses = (taken: ReturnType<Measuring['take']>, lossRatios: () => Measurements['lossRatios']) =>
  taken && { ...taken, lossRatios: lossRatios() };

const ensureSockets = (sockets: ProbeSockets, { probes }: HealthPlan, port: number): Problem[] => {
  const addresses = new Map(probes.map(({ localAddress, family }) => [localAddress, family]));
  return [...sockets.ensure(addresses)].map(([address, why]) => ({
    reason: 'ProbeFailed',
    message: `probes cannot use UDP port ${port} of ${address}: ${why}`,
  }));
};

export const createProber = (
  settings: WorkerSettings,
  kernel: GroupKernel | undefined,
  onChanged: OnChanged,
): Prober => {
  const file = openVerdictFile(settings.stateFile);
  const measuring = createMeasuring();
  const reporter = createReporter(onChanged);
  let plan: HealthPlan = { probes: [], groups: [], mtuBytes: 0 };
  const changedGroups = createGroupNews();
  const changedLosses = createLossNews();

  const { port, netnsFd } = settings;
  const onVerdict = (id: string, peer = peers.get(id)): void => {
    if (!peer) return;
    groups.refresh(id); // before everything else: this is the failover
    reached.forget();
    report(id, peer);
    file.save(() => verdicts.all());
  };
  const probeKeys = createRenewableKeys(settings.keys);
  const peers = createPeers({
    file,
    deriveKeys: probeKeys.derive,
    transmit: (request, peer) => exchange.request(request, { address: peer.session.plan.address, port }, peer),
    onVerdict,
    onPathMtu: (id, peer) => report(id, peer),
    onTold: (id, peer) => report(id, peer),
    missesEchoes: (id) => echoes.missed(id),
  });
  const inNamespace = netnsFd === undefined ? {} : { netnsFd };
  const echoes = createEchoes({ ...inNamespace, measuring, known: file.known, onChange: (id) => onVerdict(id) });
  const report = (id: string, peer: Peer): void => reporter.report(id, peer, echoes.forwards(id));
  const verdicts = createVerdicts(peers, echoes);
  const groups = createGroupOwner(kernel, verdicts);
  const reached = createReachedCache((family) => plan.servedSites && groups.reached(plan.servedSites, family));
  const exchange = createExchange({
    settings,
    measuring,
    peerAt: (address) => peers.at(address),
    reached: (family) => reached.of(family),
  });

  return {
    async apply(next) {
      plan = next;
      const fromSockets = ensureSockets(exchange.sockets, plan, port);
      const { gone, problems } = peers.ensure(plan.probes, plan.mtuBytes);
      const fromEchoes = echoes.ensure(plan.echoes ?? [], (id) => peers.get(id)?.session.plan, plan.echoDevice);
      reporter.forget(gone);
      for (const [id, peer] of peers.entries()) report(id, peer);
      const fromGroups = await groups.apply(plan.groups);
      reached.forget();
      file.save(() => verdicts.all());
      return [...fromSockets, ...problems, ...fromEchoes, ...fromGroups, ...file.problems()];
    },
    removeStale: () => groups.removeStale(),
    setKeys(keys) {
      probeKeys.renew(keys);
      peers.renewKeys();
    },
    measured: () => withLosses(measuring.take(), () => changedLosses(peers.entries())),
    changedGroups: () => changedGroups(groups.reports()),
    async stop() {
      peers.stop();
      exchange.sockets.close();
      await file.settled(); // it asks echoes for what they know
      echoes.stop();
    },
  };
};
