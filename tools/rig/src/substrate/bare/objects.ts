import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PUBLIC_KEY_FILE } from '@unbounded/config/ownership';
import type { EgressNodeSlice } from '@unbounded/crds';
import type { ObjectSource } from '../../apps/agents.ts';
import { FEATURES } from '../../features/features.ts';
import type { LabLayout } from '../../layout/layout.ts';
import { kernelProtocols } from '../../machine/kernel.ts';
import { state } from '../../machine/paths.ts';
import { siteObjects } from '../site-objects.ts';
import { nodeFile } from '../../node/node.ts';
import { egressSlicesOf } from './egress-slices.ts';
import { readPods } from './pods.ts';
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

/** What nodes are told about egress addresses, for the pods that there are. */
export const egressSlices = (layout: LabLayout): EgressNodeSlice[] => {
  const applied = [...siteObjects(layout), ...FEATURES.flatMap(({ examples }) => examples(layout))];
  return egressSlicesOf(layout, applied as { kind: string }[], readPods());
};

/** Gives all agents their objects, whole. */
export const writeObjects = (layout: LabLayout, reports: Reports): void => {
  const file = join(objectsFolder, 'world.yaml');
  const objects = [...worldObjects(layout, reports), ...egressSlices(layout)];
  writeFileSync(`${file}.new`, objects.map((object) => JSON.stringify(object)).join('\n---\n'));
  renameSync(`${file}.new`, file);
};
