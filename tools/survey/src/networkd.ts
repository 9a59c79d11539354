import { DROP_IN_NAME, FOREIGN_SETTINGS, MANAGER_DROP_INS } from '@unbounded/config/manager-drop-ins';
import type { Row } from './row.ts';
import { type Assignment, assignmentsIn, readDropIns, readSettingFile } from './setting-files.ts';

/** What systemd-networkd does with routes, rules and nexthops of others: networkd.conf(5). */

const MANAGER = 'systemd-networkd';
const DROP_IN = MANAGER_DROP_INS.find(({ manager }) => manager === MANAGER)!;
/** The one that counts most first. */
const HOMES = ['/etc/systemd', '/run/systemd', '/usr/local/lib/systemd', '/usr/lib/systemd', '/lib/systemd'];
const BOOLEANS: Readonly<Record<string, boolean>> = {
  ...{ 1: true, yes: true, y: true, true: true, t: true, on: true },
  ...{ 0: false, no: false, n: false, false: false, f: false, off: false },
};

/** Of the main file the first one counts; drop-ins come behind it, whatever their folders. */
const assignments = (root: string): Assignment[] => {
  const main = HOMES.map((home) => readSettingFile(root, `${home}/networkd.conf`)).find((file) => file);
  const dropIns = readDropIns(
    root,
    HOMES.map((home) => `${home}/${DROP_IN.folder}`),
  );
  return assignmentsIn([...(main ? [main] : []), ...dropIns]);
};

/** It is true unless a file says otherwise; a value that is no boolean is ignored. */
const effective = (all: readonly Assignment[], wanted: string): { readonly isOn: boolean; readonly path?: string } => {
  const last = all.findLast(
    ({ section, key, value }) => section === 'Network' && key === wanted && BOOLEANS[value.toLowerCase()] !== undefined,
  );
  return last ? { isOn: BOOLEANS[last.value.toLowerCase()]!, path: last.path } : { isOn: true };
};

const sortsBehindOurs = (path: string): boolean =>
  path.includes(`/${DROP_IN.folder}/`) && path.slice(path.lastIndexOf('/') + 1) > DROP_IN_NAME;

export const networkdRow = (root: string, isRunning: boolean): Row => {
  if (!isRunning) return { name: MANAGER, state: 'off', advice: 'it does not run' };
  const all = assignments(root);
  const on = FOREIGN_SETTINGS.map((key) => ({ key, ...effective(all, key) })).filter(({ isOn }) => isOn);
  if (on.length === 0)
    return { name: MANAGER, state: 'ok', advice: 'it leaves routes, rules and nexthops of others alone' };
  const values = on.map(({ key, path }) => `${key}=yes (${path ?? 'default'})`).join(', ');
  const stronger = [...new Set(on.flatMap(({ path }) => (path !== undefined && sortsBehindOurs(path) ? [path] : [])))];
  const change = stronger.length > 0 ? `take it out of ${stronger.join(', ')}, which counts more, and ` : '';
  return {
    name: MANAGER,
    state: 'disturbs',
    advice: `${values}: it removes routes and rules of ours when it starts; ${change}add this file, then: ${DROP_IN.command}`,
    file: { path: `/etc/${DROP_IN.home}/${DROP_IN.folder}/${DROP_IN_NAME}`, content: DROP_IN.content },
  };
};
