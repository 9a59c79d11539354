import { Variant } from 'dbus-native';
import {
  type FoundObjects,
  type Kind,
  KINDS,
  type Objects,
  OUR_NAMES,
  type Setting,
  type Settings,
  type Step,
} from './firewalld.plan.ts';
import type { SystemBus } from './system-bus.ts';

/** firewalld by its D-Bus interface (firewalld.dbus(5)), of version 1.0 and later: who has it may own its nftables table. */

export const FIREWALLD_NAME = 'org.fedoraproject.FirewallD1';

export interface Firewalld {
  isRunning(): Promise<boolean>;
  /** Our objects, as far as they are there. */
  read(): Promise<FoundObjects>;
  /** Devices that are in a zone of somebody else: firewalld has a device in one zone. */
  devicesOfOthers(): Promise<ReadonlyMap<string, string>>;
  /** Whether it drops packets of IPv6 that come by another device than the way back to their source. */
  checksReversePaths(): Promise<boolean>;
  take(step: Step): Promise<void>;
  /** What is on disk is in force then; packets of new connections wait for as long. */
  reload(): Promise<void>;
}

const RUNTIME = '/org/fedoraproject/FirewallD1';
const CONFIG = `${RUNTIME}/config`;

/** How the interface names what is the same for all kinds. */
interface Dialect {
  readonly names: string;
  readonly byName: string;
  readonly add: string;
  readonly get: string;
  readonly update: string;
  readonly runtimeNames: string;
  readonly runtimeGet: string;
}

const DIALECTS: Readonly<Record<Kind, Dialect>> = {
  zone: {
    ...{ names: 'getZoneNames', byName: 'getZoneByName', add: 'addZone2', get: 'getSettings2', update: 'update2' },
    ...{ runtimeNames: 'getZones', runtimeGet: 'getZoneSettings2' },
  },
  policy: {
    ...{ names: 'getPolicyNames', byName: 'getPolicyByName', add: 'addPolicy', get: 'getSettings', update: 'update' },
    ...{ runtimeNames: 'getPolicies', runtimeGet: 'getPolicySettings' },
  },
  ipset: {
    ...{ names: 'getIPSetNames', byName: 'getIPSetByName', add: 'addIPSet', get: 'getSettings', update: 'update' },
    ...{ runtimeNames: 'getIPSets', runtimeGet: 'getIPSetSettings' },
  },
};

const typeOf = (value: Setting): string => {
  if (typeof value === 'object') return 'as';
  return { string: 's', number: 'i', boolean: 'b' }[typeof value as 'string' | 'number' | 'boolean'];
};

const toDict = (settings: Settings): Record<string, Variant> =>
  Object.fromEntries(Object.entries(settings).map(([key, value]) => [key, new Variant(typeOf(value), value)]));

/** Of IP sets: version, short, description, type, options, entries. */
const toSetStruct = ({ version, short, description, type, family, entries }: Settings): unknown[] => [
  ...[version, short, description, type],
  family === 'inet6' ? { family } : {},
  entries,
];

type SetStruct = readonly [string, string, string, string, Readonly<Record<string, string>>, readonly string[]];
const fromSetStruct = ([version, short, description, type, options, entries]: SetStruct): Settings => ({
  ...{ version, short, description, type, entries },
  family: options['family'] ?? 'inet',
});

const SIGNATURES: Readonly<Record<Kind, string>> = { zone: 'a{sv}', policy: 'a{sv}', ipset: '(ssssa{ss}as)' };
const written = (kind: Kind, settings: Settings): unknown =>
  kind === 'ipset' ? toSetStruct(settings) : toDict(settings);
const read = (kind: Kind, found: unknown): Settings =>
  kind === 'ipset' ? fromSetStruct(found as SetStruct) : (found as Settings);

const interfaceOf = (kind: Kind): string => `${FIREWALLD_NAME}.${kind}`;
const configInterfaceOf = (kind: Kind): string => `${FIREWALLD_NAME}.config.${kind}`;

/** Calls of what is in force, of what is on disk, and of one object of that. */
const callsOf = (bus: SystemBus) => {
  const config = (member: string, signature?: string, ...body: unknown[]): Promise<unknown> =>
    bus.call({ path: CONFIG, interface: `${FIREWALLD_NAME}.config`, member, ...(signature && { signature, body }) });
  const runtime = (kind: Kind, member: string, signature?: string, ...body: unknown[]): Promise<unknown> =>
    bus.call({ path: RUNTIME, interface: interfaceOf(kind), member, ...(signature && { signature, body }) });
  const object = async (kind: Kind, name: string, member: string, ...body: unknown[]): Promise<unknown> => {
    const path = (await config(DIALECTS[kind].byName, 's', name)) as string;
    const call = { path, interface: configInterfaceOf(kind), member };
    return bus.call(body.length > 0 ? { ...call, signature: SIGNATURES[kind], body } : call);
  };
  return { config, runtime, object };
};
type Calls = ReturnType<typeof callsOf>;

/** One question after another: firewalld answers no two at once. */
const readOurs = async (
  names: (kind: Kind) => Promise<unknown>,
  get: (kind: Kind, name: string) => Promise<unknown>,
): Promise<Objects> => {
  const found: Record<Kind, Record<string, Settings>> = { ipset: {}, zone: {}, policy: {} };
  for (const kind of KINDS) {
    const there = new Set((await names(kind)) as readonly string[]);
    for (const name of OUR_NAMES[kind].filter((one) => there.has(one)))
      found[kind][name] = read(kind, await get(kind, name));
  }
  return found;
};

const take = async ({ config, runtime, object }: Calls, step: Step): Promise<void> => {
  const { kind, name } = step;
  if (step.do === 'remove') await object(kind, name, 'remove');
  else if (step.store === 'permanent' && step.do === 'add')
    await config(DIALECTS[kind].add, `s${SIGNATURES[kind]}`, name, written(kind, step.settings));
  else if (step.store === 'permanent') await object(kind, name, DIALECTS[kind].update, written(kind, step.settings));
  else if (kind === 'ipset') await runtime(kind, 'setEntries', 'sas', name, step.settings['entries']);
  else {
    const member = kind === 'zone' ? 'setZoneSettings2' : 'setPolicySettings';
    await runtime(kind, member, 'sa{sv}', name, toDict(step.settings));
  }
};

type ActiveZones = Readonly<Record<string, { readonly interfaces?: readonly string[] }>>;

export const createFirewalld = (bus: SystemBus): Firewalld => {
  const calls = callsOf(bus);
  const { config, runtime, object } = calls;
  return {
    isRunning: () => bus.isOwned(),
    read: async () => ({
      permanent: await readOurs(
        (kind) => config(DIALECTS[kind].names),
        (kind, name) => object(kind, name, DIALECTS[kind].get),
      ),
      runtime: await readOurs(
        (kind) => runtime(kind, DIALECTS[kind].runtimeNames),
        (kind, name) => runtime(kind, DIALECTS[kind].runtimeGet, 's', name),
      ),
    }),
    async devicesOfOthers() {
      const zones = Object.entries((await runtime('zone', 'getActiveZones')) as ActiveZones);
      return new Map(
        zones
          .filter(([zone]) => !OUR_NAMES.zone.includes(zone))
          .flatMap(([zone, { interfaces = [] }]) => interfaces.map((device) => [device, zone] as const)),
      );
    },
    async checksReversePaths() {
      const asked = { path: CONFIG, interface: 'org.freedesktop.DBus.Properties', member: 'GetAll' };
      const all = await bus.call({ ...asked, signature: 's', body: [`${FIREWALLD_NAME}.config`] });
      // The second is of versions that know more than yes and no.
      const { IPv6_rpfilter: yesOrNo = 'no', IPv6_rpfilter2: mode = yesOrNo } = all as Readonly<Record<string, string>>;
      return mode === 'yes' || mode.startsWith('strict');
    },
    take: (step) => take(calls, step),
    async reload() {
      await bus.call({ path: RUNTIME, interface: FIREWALLD_NAME, member: 'reload' });
    },
  };
};
