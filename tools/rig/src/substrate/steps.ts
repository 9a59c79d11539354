import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inNamespace } from '../machine/command.ts';
import { pidOf, startDaemon } from '../machine/daemon.ts';
import { type LabLayout, namespaceOf, WAN } from '../layout/layout.ts';
import { binary, state } from '../machine/paths.ts';

/** Steps of bringing up that every lab has, with Kubernetes and without. */

/** Runs a step and prints how long it took. */
export const step = async <T>(what: string, work: () => Promise<T> | T): Promise<T> => {
  const start = Date.now();
  const result = await work();
  console.log(`  ${what.padEnd(58)}${((Date.now() - start) / 1000).toFixed(1).padStart(6)} s`);
  return result;
};

const layoutFile = join(state, 'layout.json');

/** Notes which lab is up, before anything of it is made. */
export const saveLayout = (layout: LabLayout): void => {
  mkdirSync(state, { recursive: true });
  writeFileSync(layoutFile, JSON.stringify(layout));
};

/** undefined: there is no lab. */
export const readLayout = (): LabLayout | undefined =>
  existsSync(layoutFile) ? (JSON.parse(readFileSync(layoutFile, 'utf8')) as LabLayout) : undefined;

/** A host of the outside world, which answers with the address it is asked from. */
export const startWorld = (): void => {
  if (pidOf('world') === undefined)
    startDaemon('world', [...inNamespace(namespaceOf(WAN.worldName)), binary('probe'), 'serve']);
};
