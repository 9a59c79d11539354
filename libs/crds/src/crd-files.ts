import { stringify } from 'yaml';

import { toCustomResourceDefinition } from './kind.ts';
import { kinds } from './kinds.ts';

const HEADER = '# Generated from libs/crds by tools/generate; do not edit.\n';

/** The generated files of deploy/crds by name, one for each kind. */
export const crdFiles = (): ReadonlyMap<string, string> =>
  new Map(
    kinds.map((definition) => {
      const crd = toCustomResourceDefinition(definition);
      return [`${crd.metadata.name}.yaml`, HEADER + stringify(crd, { lineWidth: 120, aliasDuplicateObjects: false })];
    }),
  );
