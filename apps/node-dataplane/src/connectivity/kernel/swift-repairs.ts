import { readFileSync, readlinkSync } from 'node:fs';
import { ROUTE_PROTOCOL } from '@unbounded/config/ownership';
import {
  type Netconf,
  NetlinkError,
  type RouteEvent,
  type RouteSocket,
  type RouteSpec,
  type RuleSpec,
} from '@unbounded/netlink';
import type { Logger } from '@unbounded/telemetry';
import type { Problem } from '@unbounded/topology';
import type { NodeEvent } from '../../section.port.ts';
import type { DeviceSpec } from './devices.plan.ts';
import { routeKey } from '../../kernel/routes.diff.ts';
import { isSameRule } from '../../kernel/routing-rules.ts';
import { createPatience } from './patience.ts';

/**
 * What others take away and no pass needs to think about is put back within milliseconds of the kernel's word: routes and rules (network
 * managers remove those of unknown protocols), forwarding, and the settings of our devices. A pass comes after it all the same, and is what
 * repairs everything else. Who changes something over and over is not fought: it is reported, and left to the regular passes.
 */

/** What the passes of now want. */
export interface Wanted {
  readonly routes: readonly RouteSpec[];
  readonly rules: readonly RuleSpec[];
  /** Our devices by their index. */
  readonly devices: ReadonlyMap<number, DeviceSpec>;
}

export interface SwiftRepairs {
  /** Before the pass removes anything: what is not in it is not put back. */
  expect(wanted: Wanted): void;
  /** Whether a pass is to come soon. */
  onEvent(event: RouteEvent): boolean;
  /** What was put back since the last call. */
  takeEvents(): NodeEvent[];
  problems(): Problem[];
}

export interface SwiftRepairParts {
  readonly net: Pick<RouteSocket, 'routes' | 'rules'>;
  /** Forwarding of a family, on again as far as the node needs it. @returns whether it was off and should not be */
  readonly forward: (family: 4 | 6) => boolean;
  /** Settings of a device of ours. @returns the names of those that were not as they should be */
  readonly settle: (device: DeviceSpec) => readonly string[];
  readonly logger: Logger;
  /** Milliseconds, of a clock that does not step. */
  readonly elapsed?: () => number;
  /** Called for each thing that is put back. */
  readonly onRestored?: (what: Restored) => void;
  /** Of the process that has the netlink port; undefined: not known. */
  readonly nameOf?: (port: number) => string | undefined;
}

/** Milliseconds. `ip route flush` looks again until nothing is left: what comes back at once is removed once more. */
const COLLECT_MS = 20;
/** Longest list in an Event. */
const MAX_NOTES = 10;
const FORWARDING = { 4: 'net.ipv4.ip_forward', 6: 'net.ipv6.conf.all.forwarding' } as const;
const [ROUTES, RULES] = ['routes of protocol 117', 'rules of protocol 117'] as const;
/** Names of processes are asked for by this; a port above it is no process id. */
const MAX_PID = 4_194_304;

/** The initial namespace of processes (PROC_PID_INIT_INO, linux/proc_ns.h): elsewhere a port is the number of another process. */
const seesAllProcesses = (): boolean => readlinkSync('/proc/self/ns/pid') === 'pid:[4026531836]';

/** The command of the process, if its id is the port of the netlink socket and the agent sees it. */
const nameOfPort = (port: number): string | undefined => {
  if (port > MAX_PID || !seesAllProcesses()) return undefined;
  try {
    return readFileSync(`/proc/${port}/comm`, 'utf8').trim();
  } catch {
    return undefined; // gone
  }
};

/** Who asked for a change, in words. */
const describePort =
  (nameOf: NonNullable<SwiftRepairParts['nameOf']>) =>
  (port: number): string => {
    const name = port === 0 ? undefined : nameOf(port);
    if (name !== undefined) return ` by ${name} (pid ${port})`;
    return port === 0 ? '' : ` by the netlink port ${port}`;
  };

const isThere = (error: unknown): boolean => error instanceof NetlinkError && error.code === 'EEXIST';

type Restored = 'route' | 'rule' | 'setting';

/** What was put back, with its count; who took it away is looked up once, and not for each of thousands of routes. */
const createNotes = ({ onRestored, nameOf = nameOfPort }: Pick<SwiftRepairParts, 'onRestored' | 'nameOf'>) => {
  const by = describePort(nameOf);
  const notes = new Map<string, { readonly text: string; count: number }>();
  const add = (what: Restored, key: string, text: () => string): void => {
    onRestored?.(what);
    const known = notes.get(key);
    if (known) known.count += 1;
    else if (notes.size < MAX_NOTES) notes.set(key, { text: text(), count: 1 });
  };
  return {
    removed: (what: 'route' | 'rule', port: number): void =>
      add(what, `${what} ${port}`, () => `${what}s were removed${by(port)} and put back`),
    changed: (setting: string): void => add('setting', setting, () => `${setting} was changed and set again`),
    takeEvents(): NodeEvent[] {
      if (notes.size === 0) return [];
      const note = [...notes.values()].map(({ text, count }) => (count === 1 ? text : `${text} (${count})`)).join('; ');
      notes.clear();
      return [{ type: 'Warning', reason: 'SettingRestored', action: 'RestoreSettings', note }];
    },
  };
};

const contested = (thing: string): Problem => ({
  reason: 'SettingContested',
  message: `${thing}: somebody changes them over and over; they are restored every few seconds only, and packets are lost meanwhile: end what changes them (docs/requirements.md)`,
});

type LogFailure = (what: string) => (error: unknown) => void;

/** What one program removes comes as one event each, and goes back in one batch. */
const createBatch = ({ routes: ofRoutes, rules: ofRules }: SwiftRepairParts['net'], failed: LogFailure) => {
  const routes = new Map<string, RouteSpec>();
  const rules = new Set<RuleSpec>();
  let timer: NodeJS.Timeout | undefined;
  const putBack = (): void => {
    timer = undefined;
    const changes = [...routes.values()].map((value) => ({ op: 'create' as const, value }));
    const removed = [...rules];
    routes.clear();
    rules.clear();
    void ofRoutes.apply(changes).then((results) => {
      for (const result of results) if (!result.ok) failed('a route')(result.error);
    }, failed('routes'));
    for (const rule of removed) ofRules.create(rule).catch(failed('a rule'));
  };
  const begin = (): void => void (timer ??= setTimeout(putBack, COLLECT_MS));
  return {
    hasRoutes: () => routes.size > 0,
    hasRules: () => rules.size > 0,
    addRoute(route: RouteSpec): void {
      routes.set(routeKey(route), route);
      begin();
    },
    addRule(rule: RuleSpec): void {
      rules.add(rule);
      begin();
    },
  };
};

type EventOf<S extends RouteEvent['subject']> = Extract<RouteEvent, { readonly subject: S }>;

const isRemovalOfOurs = ({ change, value }: EventOf<'route' | 'rule'>): boolean =>
  change === 'deleted' && value.protocol === ROUTE_PROTOCOL;
/** Of a device of ours; what is not told is as it was. */
const isAsWanted = ({ forwarding = true, rpFilter = 2 }: Netconf): boolean => forwarding && rpFilter === 2;

export const createSwiftRepairs = (parts: SwiftRepairParts): SwiftRepairs => {
  const { net, forward, settle, logger, elapsed = () => performance.now() } = parts;
  const failed: LogFailure = (what) => (error) => {
    if (!isThere(error))
      logger.warn({ error: (error as Error).message }, `cannot put back ${what}; the next pass tries`);
  };
  const [patience, notes, batch] = [createPatience(elapsed), createNotes(parts), createBatch(net, failed)];
  let wanted: Wanted = { routes: [], rules: [], devices: new Map() };
  let routesByKey = new Map<string, RouteSpec>();

  const mayRepair = (thing: string): boolean => {
    if (!patience.allows(thing)) return false;
    patience.spend(thing);
    return true;
  };
  const onRoute = (event: EventOf<'route'>): boolean => {
    if (!isRemovalOfOurs(event)) return false;
    const route = routesByKey.get(routeKey(event.value));
    if (!route || event.port === 0) return true; // of a device that went, for one
    if (!batch.hasRoutes() && !mayRepair(ROUTES)) return false;
    batch.addRoute(route);
    notes.removed('route', event.port);
    return true;
  };
  const onRule = (event: EventOf<'rule'>): boolean => {
    if (!isRemovalOfOurs(event)) return false;
    const rule = wanted.rules.find((one) => isSameRule(one, event.value));
    if (!rule) return true;
    if (!batch.hasRules() && !mayRepair(RULES)) return false;
    batch.addRule(rule);
    notes.removed('rule', event.port);
    return true;
  };
  /** @param repair says which settings it had to write */
  const onSetting = (thing: string, repair: () => readonly string[]): boolean => {
    if (!patience.allows(thing)) return false;
    try {
      const settings = repair();
      if (settings.length > 0) patience.spend(thing);
      for (const setting of settings) notes.changed(setting);
    } catch (error) {
      failed(thing)(error);
    }
    return true;
  };
  const onNetconf = ({ value }: EventOf<'netconf'>): boolean => {
    const { family, link, forwarding } = value;
    if (link === 'all') {
      const setting = FORWARDING[family];
      return forwarding === false && onSetting(setting, () => (forward(family) ? [setting] : []));
    }
    // Of IPv6 the setting of all devices decides.
    const device = link === 'default' || family === 6 ? undefined : wanted.devices.get(link);
    return device !== undefined && !isAsWanted(value) && onSetting(`settings of ${device.name}`, () => settle(device));
  };

  return {
    expect(now) {
      wanted = now;
      routesByKey = new Map(now.routes.map((route) => [routeKey(route), route]));
    },
    onEvent(event) {
      if (event.subject === 'route') return onRoute(event);
      if (event.subject === 'rule') return onRule(event);
      return event.subject === 'netconf' && onNetconf(event);
    },
    takeEvents: () => notes.takeEvents(),
    problems: () => patience.contested().map(contested),
  };
};
