import { matchesGlob } from 'node:path';
import { DROP_IN_NAME, MANAGER_DROP_INS, UNMANAGED_DEVICES } from '@unbounded/config/manager-drop-ins';
import type { Row } from './row.ts';
import { type Assignment, assignmentsIn, readDropIns, readSettingFile } from './setting-files.ts';

/** Whether NetworkManager leaves our devices unmanaged by `[keyfile] unmanaged-devices`: NetworkManager.conf(5). */

const MANAGER = 'NetworkManager';
const DROP_IN = MANAGER_DROP_INS.find(({ manager }) => manager === MANAGER)!;
const MAIN = '/etc/NetworkManager/NetworkManager.conf';
/** The one that counts most first. */
const FOLDERS = ['/etc', '/run', '/usr/lib', '/lib'].map((home) => `${home}/${MANAGER}/${DROP_IN.folder}`);

/** Files of packages and of this boot come before the main file, the administrator's behind it. */
const assignments = (root: string): Assignment[] => {
  const main = readSettingFile(root, MAIN);
  const dropIns = readDropIns(root, FOLDERS);
  const isLast = ({ path }: { readonly path: string }): boolean => path.startsWith(`${FOLDERS[0]}/`);
  return assignmentsIn([
    ...dropIns.filter((file) => !isLast(file)),
    ...(main ? [main] : []),
    ...dropIns.filter(isLast),
  ]);
};

const listOf = (value: string): string[] =>
  value
    .split(/[;,]/)
    .map((one) => one.trim())
    .filter(Boolean);

/** `=` begins the list anew, `+=` and `-=` change it. */
const unmanagedSpecs = (all: readonly Assignment[]): string[] => {
  let specs: string[] = [];
  for (const { section, key, value } of all) {
    if (section !== 'keyfile') continue;
    const given = listOf(value);
    if (key === 'unmanaged-devices') specs = given;
    else if (key === 'unmanaged-devices+') specs = [...specs, ...given];
    else if (key === 'unmanaged-devices-') specs = specs.filter((spec) => !given.includes(spec));
  }
  return specs;
};

/** What is told by other things than a name (a type, a driver) does not count here. */
const isNamed = (spec: string, device: string): boolean => {
  if (spec === '*') return true;
  const [, exactly, pattern] = /^interface-name:([=~]?)(.*)$/.exec(spec) ?? [];
  if (pattern === undefined) return false;
  return pattern === device || (exactly !== '=' && matchesGlob(device, pattern));
};

const isUnmanaged = (specs: readonly string[], device: string): boolean => {
  const excepted = specs.some((spec) => spec.startsWith('except:') && isNamed(spec.slice('except:'.length), device));
  return !excepted && specs.some((spec) => isNamed(spec, device));
};

export const networkManagerRow = (root: string, isRunning: boolean): Row => {
  if (!isRunning) return { name: MANAGER, state: 'off', advice: 'it does not run' };
  const specs = unmanagedSpecs(assignments(root));
  // A pattern of ours stands for a device of such a name.
  const managed = UNMANAGED_DEVICES.filter((device) => !isUnmanaged(specs, device.replace('*', '1820')));
  if (managed.length === 0) return { name: MANAGER, state: 'ok', advice: 'it leaves our devices unmanaged' };
  return {
    name: MANAGER,
    state: 'disturbs',
    advice: `unmanaged-devices of [keyfile] does not name ${managed.join(', ')}: add this file, then: ${DROP_IN.command}`,
    file: { path: `/etc/${DROP_IN.home}/${DROP_IN.folder}/${DROP_IN_NAME}`, content: DROP_IN.content },
  };
};
