import { stringify } from 'yaml';

import { type KindDefinition, toCustomResourceDefinition } from './kind.ts';
import { egressKinds, kinds } from './kinds.ts';

const HEADER = '# Generated from libs/crds by tools/generate; do not edit.\n';

/** Name and text, one for each kind. */
const filesOf = (definitions: readonly KindDefinition[]): ReadonlyMap<string, string> =>
  new Map(
    definitions.map((definition) => {
      const crd = toCustomResourceDefinition(definition);
      return [`${crd.metadata.name}.yaml`, HEADER + stringify(crd, { lineWidth: 120, aliasDuplicateObjects: false })];
    }),
  );

/** The generated files by their folder in deploy; egress-crds are not part of the chart. */
export const crdFolders = (): ReadonlyMap<'crds' | 'egress-crds', ReadonlyMap<string, string>> =>
  new Map([
    ['crds', filesOf(kinds)],
    ['egress-crds', filesOf(egressKinds)],
  ]);
