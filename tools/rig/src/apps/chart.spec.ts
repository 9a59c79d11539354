import { expect, test } from 'vitest';
import { layoutOf } from '../layout/layout.ts';
import { DATAPLANES } from '../layout/options.ts';
import { flagsOfPods } from './chart.ts';

/** Flags that the versions from which upgrade-from.matrix.spec.ts upgrades have as well, with the same meaning. */
const IN_EVERY_VERSION = { 'node-dataplane': ['--dataplane'], 'gateway-health': ['--dns-servers'] };

test.each(DATAPLANES)('agents of a former version get no flag that had another name then (%s)', (dataplane) => {
  for (const topology of ['pools', 'mapped'] as const)
    for (const [app, flags] of Object.entries(flagsOfPods(layoutOf({ agents: 'pods', dataplane, topology }))))
      for (const flag of flags)
        expect(IN_EVERY_VERSION[app as keyof typeof IN_EVERY_VERSION]).toContain(flag.split('=')[0]);
});
