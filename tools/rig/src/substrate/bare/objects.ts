import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PUBLIC_KEY_FILE } from '@unbounded/config/ownership';
import type { ObjectSource } from '../../apps/agents.ts';
import type { LabLayout } from '../../layout/layout.ts';
import { kernelProtocols } from '../../machine/kernel.ts';
import { state } from '../../machine/paths.ts';
import { nodeFile } from '../../node/node.ts';
import { type Reports, worldObjects } from './world-objects.ts';

/** The files that stand for an API server: objects that agents read, and what the agents report. */

export const objectsFolder = join(state, 'objects');

export const objectSource: ObjectSource = {
  prepare: () => Promise.resolve(),
  flags: () => ['--manifests-dir', objectsFolder],
};

export const keyFile = (node: string): string => nodeFile(node, PUBLIC_KEY_FILE);

/** What the agents tell of their nodes: here they leave it in files. */
export const readReports = (layout: LabLayout): Reports => {
  const protocols = kernelProtocols();
  return new Map(
    layout.nodes.map(({ name }) => [name, { publicKey: readFileSync(keyFile(name), 'utf8').trim(), protocols }]),
  );
};

/** Gives all agents their objects, whole. */
export const writeObjects = (layout: LabLayout, reports: Reports): void => {
  const file = join(objectsFolder, 'world.yaml');
  const objects = worldObjects(layout, reports);
  writeFileSync(`${file}.new`, objects.map((object) => JSON.stringify(object)).join('\n---\n'));
  renameSync(`${file}.new`, file);
};
