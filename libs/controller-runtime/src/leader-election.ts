import { setTimeout as sleep } from 'node:timers/promises';

import { ignoreGone, isConflict, type Lease, type ResourceClient } from '@unbounded/kube';
import type { Logger } from '@unbounded/telemetry';

export interface ElectionOptions {
  readonly leases: ResourceClient<Lease>;
  readonly namespace: string;
  /** Of the Lease. */
  readonly name: string;
  /** Who we are; unique among the replicas. */
  readonly identity: string;
  readonly logger: Logger;
  /** A leader silent for this long is replaced. */
  readonly leaseDurationMs?: number;
  readonly onChange?: (isLeader: boolean) => void;
}

export interface Election {
  /**
   * Waits for leadership, then runs `lead` until it is lost or `signal` aborts; lost: waits again. `lead` gets a signal
   * that aborts before anyone else can become leader. The Lease is released after `lead` has ended.
   */
  run(signal: AbortSignal, lead: (signal: AbortSignal) => Promise<void>): Promise<void>;
  readonly isLeader: boolean;
}

/** client-go's 15 s, and its proportions 15 : 10 : 2. */
const DEFAULT_LEASE_MS = 15_000;
const RENEW_DEADLINE = 2 / 3;
const RETRY_PERIOD = 2 / 15;
const JITTER = 0.2;

const microTime = (): string => new Date().toISOString().replace('Z', '000Z');

/** What the last look at the Lease showed, and when (monotonic): clocks of other machines are not trusted. */
interface Observation {
  readonly lease: Lease;
  readonly version: string;
  readonly atMs: number;
}

/** A clock-independent view of one Lease. */
const createCandidate = ({
  leases,
  namespace,
  name,
  identity,
  leaseDurationMs = DEFAULT_LEASE_MS,
}: ElectionOptions) => {
  let seen: Observation | undefined;

  const observe = (lease: Lease): Observation => {
    const version = lease.metadata.resourceVersion ?? '';
    if (seen?.version !== version) seen = { lease, version, atMs: performance.now() };
    return seen;
  };

  const specFor = (lease: Lease | undefined): Lease['spec'] => {
    const isOurs = lease?.spec?.holderIdentity === identity;
    const acquireTime = isOurs ? lease.spec?.acquireTime : undefined;
    return {
      holderIdentity: identity,
      leaseDurationSeconds: Math.max(1, Math.ceil(leaseDurationMs / 1000)),
      acquireTime: acquireTime ?? microTime(),
      renewTime: microTime(),
      leaseTransitions: (lease?.spec?.leaseTransitions ?? 0) + (isOurs || lease === undefined ? 0 : 1),
    };
  };

  const isFree = ({ lease, atMs }: Observation): boolean => {
    const { holderIdentity, leaseDurationSeconds = 0 } = lease.spec ?? {};
    return !holderIdentity || holderIdentity === identity || performance.now() > atMs + leaseDurationSeconds * 1000;
  };

  const read = (signal: AbortSignal): Promise<Lease | undefined> =>
    leases.get(name, { namespace, signal }).catch(ignoreGone);

  return {
    /** True: the Lease is ours until `leaseDurationMs` after the call began. */
    tryHold: async (signal: AbortSignal): Promise<boolean> => {
      const lease = await read(signal);
      const metadata = { name, namespace };
      try {
        if (!lease) {
          const created = {
            apiVersion: 'coordination.k8s.io/v1',
            kind: 'Lease',
            metadata,
            spec: specFor(undefined),
          } as Lease;
          observe(await leases.create(created, { signal }));
          return true;
        }
        if (!isFree(observe(lease))) return false;
        observe(await leases.update({ ...lease, spec: specFor(lease) } as Lease, { signal }));
        return true;
      } catch (error) {
        if (isConflict(error)) return false; // someone was faster
        throw error;
      }
    },
    /** Lets the next leader start without waiting. Only a Lease that is still ours is touched. */
    release: async (): Promise<void> => {
      const signal = AbortSignal.timeout(leaseDurationMs * RETRY_PERIOD);
      const lease = await read(signal);
      if (lease?.spec?.holderIdentity !== identity) return;
      const spec = { ...lease.spec, holderIdentity: '', leaseDurationSeconds: 1, renewTime: microTime() as never };
      await leases.update({ ...lease, spec }, { signal });
    },
  };
};

/** A pause before the next try; ends with the signal. */
const pauseFor = (ms: number, signal: AbortSignal): Promise<void> =>
  sleep(ms * (1 + JITTER * Math.random()), undefined, { signal }).catch(() => undefined);

export const createElection = (options: ElectionOptions): Election => {
  const { name, identity, logger, leaseDurationMs = DEFAULT_LEASE_MS, onChange } = options;
  const candidate = createCandidate(options);
  const retryMs = leaseDurationMs * RETRY_PERIOD;
  const deadlineMs = leaseDurationMs * RENEW_DEADLINE;
  let isLeader = false;

  const change = (next: boolean): void => {
    isLeader = next;
    onChange?.(next);
    logger.info({ lease: name, identity }, next ? 'became leader' : 'no longer leader');
  };

  const tryFor = (ms: number, signal: AbortSignal): Promise<boolean> =>
    candidate.tryHold(AbortSignal.any([signal, AbortSignal.timeout(Math.ceil(ms))]));

  /** Undefined when the signal aborts; else when (monotonic) the successful call began. */
  const acquire = async (signal: AbortSignal): Promise<number | undefined> => {
    while (!signal.aborted) {
      const startedMs = performance.now();
      try {
        // An answer that comes late is of a term that may have ended: another replica may lead by now.
        if ((await tryFor(deadlineMs, signal)) && performance.now() < startedMs + deadlineMs) return startedMs;
      } catch (error) {
        if (!signal.aborted) logger.warn({ lease: name, err: error }, 'lease not readable');
      }
      await pauseFor(retryMs, signal);
    }
    return undefined;
  };

  /** Resolves when leadership must end: another holder, no renewal in time, or the signal. */
  const keep = async (acquiredMs: number, signal: AbortSignal): Promise<void> => {
    let renewedMs = acquiredMs;
    let tookMs = 0;
    for (;;) {
      if (tookMs < retryMs) await pauseFor(retryMs, signal);
      if (signal.aborted) return;
      const startedMs = performance.now();
      const remainingMs = renewedMs + deadlineMs - startedMs;
      if (remainingMs <= 0) return logger.error({ lease: name }, 'lease not renewed in time');
      try {
        // Half of the time: what hangs on a connection to a server that is gone may pass on a new one.
        const isHeld = await tryFor(Math.min(remainingMs, deadlineMs / 2), signal);
        if (!isHeld) return logger.error({ lease: name }, 'lease taken by another replica');
        renewedMs = startedMs;
      } catch (error) {
        if (!signal.aborted) logger.warn({ lease: name, err: error }, 'lease not renewed');
      }
      tookMs = performance.now() - startedMs;
      // At once, not after another pause: a process that was suspended must not write on.
      if (performance.now() >= renewedMs + deadlineMs)
        return logger.error({ lease: name }, 'lease not renewed in time');
    }
  };

  const run: Election['run'] = async (signal, lead) => {
    for (;;) {
      const acquiredMs = await acquire(signal);
      if (acquiredMs === undefined) return;
      change(true);
      const term = new AbortController();
      const work = lead(AbortSignal.any([term.signal, signal]));
      try {
        await Promise.race([keep(acquiredMs, signal), work]);
      } finally {
        term.abort(new Error(`${identity} is no longer leader of ${name}`));
        await work.catch((error: unknown) => logger.error({ err: error }, 'the work of the leader failed'));
        change(false);
      }
      await candidate.release().catch((error: unknown) => logger.warn({ err: error }, 'lease not released'));
    }
  };

  return {
    run,
    get isLeader() {
      return isLeader;
    },
  };
};
