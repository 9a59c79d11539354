import { BaseSequencer, type TestSpecification } from 'vitest/node';

/**
 * Starts the spec files that take longest first: one that begins last keeps a single processor busy at the end. Vitest knows times of its own
 * runs only, and a fresh clone has none.
 */

/** Set in the environment: spec files run in any order instead, and Vitest prints the seed. Unit specs of a worker share what is loaded. */
export const RANDOM_ORDER = 'UNBOUNDED_RANDOM_ORDER';

/** Seconds on the machine of the budgets (build/test/report.json), of those that take longer than half a minute. */
export const LONG: readonly (readonly [file: string, seconds: number])[] = [
  ['apps/node-dataplane/src/connectivity/keys/rotation.full.kernel.spec.ts', 85],
  ['apps/node-dataplane/src/data-path/ebpf/migration-clsact.kernel.spec.ts', 40],
  ['apps/node-dataplane/src/data-path/ebpf/migration-tcx.kernel.spec.ts', 35],
  ['apps/node-dataplane/src/connectivity/paths/paths.kernel.spec.ts', 85],
  ['apps/node-dataplane/src/connectivity/kernel/node-addresses.kernel.spec.ts', 70],
  ['apps/node-keeper/src/relay/relay.kernel.spec.ts', 75],
  ['apps/node-dataplane/src/agent/troubled-section.kernel.spec.ts', 65],
  ['apps/static-egress/src/ownership.kube.spec.ts', 35],
  ['apps/cidr-allocator/src/cidr-allocator.kube.spec.ts', 45],
  ['apps/gateway-health/src/relay.kube.spec.ts', 40],
  ['apps/site-membership/src/site-membership.kube.spec.ts', 35],
  ['apps/gateway-health/src/gateway-health.kube.spec.ts', 33],
];

const secondsOf = ({ moduleId }: TestSpecification): number =>
  LONG.find(([file]) => moduleId.endsWith(`/${file}`))?.[1] ?? 0;

export default class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    return sorted.toSorted((a, b) => secondsOf(b) - secondsOf(a));
  }
}
