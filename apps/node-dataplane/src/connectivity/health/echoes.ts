import { createEchoDecoder, createEchoEncoder, EchoError, type Lost, type MissedEchoes } from '@unbounded/health';
import { openTun, type Tun } from '@unbounded/netlink';
import type { EchoPlan, Problem } from '@unbounded/topology';
import { ownEchoAddresses } from '../../data-path/echo-addresses.ts';
import { startTicking } from '../../thread/ticking.ts';
import { createEchoSession, type EchoSession, type EchoSettings } from './echo-session.ts';
import type { Measuring } from './measuring.ts';
import { type EchoDevice, type Family, peerId } from './messages.ts';

/**
 * Echoes through gateways: packets of the node to itself, which come in by a TUN as those of pods come in by the bridge, and come back by
 * it. They take every step that a pod's packet takes, here and at the gateway, and no agent but this one reads them.
 */

export interface Echoes {
  /** Sends as planned; settings are those of the peers' probes. @param device absent: there is none, and nothing is sent */
  ensure(
    plans: readonly EchoPlan[],
    settingsOf: (id: string) => EchoSettings | undefined,
    device: EchoDevice | undefined,
  ): Problem[];
  /** Whether what is sent through a peer comes back; undefined: nothing is sent. */
  forwards(id: string): boolean | undefined;
  /** While echoes through a peer are missed: since when. */
  lost(id: string): Lost | undefined;
  /** What the peer is to be told; undefined: nothing is missed. */
  missed(id: string): MissedEchoes | undefined;
  stop(): void;
}

export interface EchoesOptions {
  readonly netnsFd?: number;
  readonly measuring: Pick<Measuring, 'echoSent' | 'echoReturned' | 'rejected'>;
  /** What an earlier process found, by peer. */
  readonly known: ReadonlyMap<string, { readonly forwards?: false }>;
  readonly onChange: (id: string) => void;
}

/** At most. */
const SETTLING_MS = 2000;
const IP_VERSION_SHIFT = 4;

interface Entry {
  plan: EchoPlan;
  encode: ReturnType<typeof createEchoEncoder>;
  readonly session: EchoSession;
  /** By which a packet says whose it is. */
  readonly number: number;
}

/** The device of echoes, opened when there is one, and anew after it could not be or was made anew. */
const createDevice = (netnsFd: number | undefined, onPacket: (packet: Uint8Array) => void) => {
  let open: (EchoDevice & { readonly tun: Tun }) | undefined;
  let settledMs = -Infinity;
  const close = (): void => {
    open?.tun.close();
    open = undefined;
  };
  return {
    close,
    isOpen: () => open !== undefined,
    /** The kernel sends nothing out by it until it has seen that somebody is attached, which may take a second. */
    isSettling: () => performance.now() < settledMs,
    settled: () => void (settledMs = -Infinity),
    /** The errno; undefined: there is no device. */
    inject(packet: Uint8Array): number | undefined {
      return open?.tun.inject(packet);
    },
    ensure(wanted: EchoDevice | undefined): Problem[] {
      if (wanted?.index !== open?.index) close();
      if (!wanted || open) return [];
      const { name } = wanted;
      try {
        open = { ...wanted, tun: openTun({ name, ...(netnsFd === undefined ? {} : { netnsFd }), onPacket }) };
        settledMs = performance.now() + SETTLING_MS;
        return [];
      } catch (error) {
        const message = `no echoes are sent through gateways: device ${name}: ${(error as Error).message}`;
        return [{ reason: 'EchoFailed', message }];
      }
    },
  };
};

const encoderOf = ({ localAddress: source, address: destination }: EchoPlan) =>
  createEchoEncoder({ source, destination });

interface EntriesOptions extends Pick<EchoesOptions, 'known' | 'onChange'> {
  readonly isStarting: () => boolean;
  readonly transmit: (entry: Entry, sequence: bigint, token: Uint8Array) => boolean;
}

/** One for each interval: who wakes up sends for all gateways, and what comes back comes together. */
const createTickers = (tick: (intervalMs: number) => void) => {
  const tickers = new Map<number, () => void>();
  return {
    ensure(wanted: ReadonlySet<number>): void {
      for (const [intervalMs, stop] of tickers) {
        if (wanted.has(intervalMs)) continue;
        stop();
        tickers.delete(intervalMs);
      }
      for (const intervalMs of wanted) {
        if (tickers.has(intervalMs)) continue;
        const onTime = (): void => tick(intervalMs);
        tickers.set(
          intervalMs,
          startTicking(() => intervalMs, onTime),
        );
      }
    },
  };
};

/** The sessions, by peer and by number. */
const createEntries = ({ known, isStarting, transmit, onChange }: EntriesOptions) => {
  const before = new Map(known);
  const entries = new Map<string, Entry>();
  const byNumber = new Map<number, Entry>();
  const missed = new Set<Entry>();
  let last = 0;
  const noteForwards = (entry: Entry): void => void (entry.session.forwards ? missed.delete(entry) : missed.add(entry));
  const add = (id: string, plan: EchoPlan, settings: EchoSettings): void => {
    const entry: Entry = {
      plan,
      encode: encoderOf(plan),
      number: ++last,
      session: createEchoSession({
        settings,
        forwards: before.get(id)?.forwards ?? true,
        isStarting,
        transmit: (sequence, token) => transmit(entry, sequence, token),
        onChange() {
          noteForwards(entry);
          onChange(id);
        },
      }),
    };
    noteForwards(entry);
    before.delete(id);
    entries.set(id, entry);
    byNumber.set(entry.number, entry);
  };
  const tickers = createTickers((intervalMs) => {
    for (const { session } of entries.values()) if (session.settings.intervalMs === intervalMs) session.tick();
  });
  const ensureTickers = (): void =>
    tickers.ensure(new Set([...entries.values()].map(({ session }) => session.settings.intervalMs)));
  return {
    get: (id: string) => entries.get(id),
    at: (number: number) => byNumber.get(number),
    all: () => [...entries.values()],
    /** Every probe asks, and hardly ever are there any. */
    isAnyMissed: () => missed.size > 0,
    ensure(id: string, plan: EchoPlan, settings: EchoSettings): void {
      const entry = entries.get(id);
      if (entry) {
        entry.plan = plan;
        entry.encode = encoderOf(plan);
        entry.session.update(settings);
      } else add(id, plan, settings);
      ensureTickers();
    },
    keepOnly(ids: { has(id: string): boolean }): void {
      for (const [id, entry] of entries) {
        if (ids.has(id)) continue;
        entries.delete(id);
        byNumber.delete(entry.number);
        missed.delete(entry);
      }
      ensureTickers();
    },
  };
};

export const createEchoes = ({ netnsFd, measuring, ...options }: EchoesOptions): Echoes => {
  let decoders = new Map<Family, ReturnType<typeof createEchoDecoder>>();

  const onPacket = (packet: Uint8Array): void => {
    const decode = decoders.get((packet[0] ?? 0) >> IP_VERSION_SHIFT === 4 ? 4 : 6);
    if (decode === undefined) return measuring.rejected('echo_address');
    try {
      const echo = decode(packet);
      const what = entries.at(echo.id)?.session.onReturned(echo) ?? 'unexpected';
      if (what !== 'returned') return measuring.rejected(`echo_${what}`);
      device.settled();
      measuring.echoReturned();
    } catch (error) {
      if (!(error instanceof EchoError)) throw error;
      measuring.rejected(`echo_${error.fault}`);
    }
  };
  const device = createDevice(netnsFd, onPacket);
  const transmit = ({ encode, number }: Entry, sequence: bigint, token: Uint8Array): boolean => {
    const errno = device.inject(encode({ id: number, sequence, token }));
    if (errno === 0) measuring.echoSent();
    else if (errno !== undefined) measuring.rejected('send_echo');
    return errno === 0;
  };
  const entries = createEntries({ ...options, isStarting: () => device.isSettling(), transmit });

  return {
    ensure(plans, settingsOf, wantedDevice) {
      const problems = device.ensure(plans.length > 0 ? wantedDevice : undefined);
      decoders = new Map([...ownEchoAddresses(plans)].map(([family, own]) => [family, createEchoDecoder(own)]));
      const wanted = new Map<string, { readonly plan: EchoPlan; readonly settings: EchoSettings }>();
      for (const plan of plans) {
        const settings = settingsOf(peerId(plan));
        if (settings) wanted.set(peerId(plan), { plan, settings });
      }
      entries.keepOnly(wanted);
      for (const [id, { plan, settings }] of wanted) entries.ensure(id, plan, settings);
      return problems;
    },
    forwards(id) {
      const forwards = entries.get(id)?.session.forwards;
      // What was found stands while the device is away: nothing new can be.
      return forwards && !device.isOpen() ? undefined : forwards;
    },
    lost: (id) => entries.get(id)?.session.lost,
    missed(id) {
      const entry = entries.isAnyMissed() ? entries.get(id) : undefined;
      if (!entry || entry.session.forwards) return undefined;
      const { sinceMs, detectMs } = entry.session.lost;
      // One that came back before may be about to be missed, too.
      const isAfter = ({ returnedMs }: EchoSession): boolean => returnedMs > sinceMs + detectMs;
      const others = entries.all().filter(({ plan }) => plan.family === entry.plan.family);
      return others.some(({ session }) => session.forwards && isAfter(session)) ? 'here' : 'all';
    },
    stop() {
      entries.keepOnly(new Set());
      device.close();
    },
  };
};
