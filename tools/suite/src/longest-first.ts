import { BaseSequencer, type TestSpecification } from 'vitest/node';

/**
 * Starts the spec files that take longest first: one that begins last keeps a single processor busy at the end. Vitest knows times of its own
 * runs only, and a fresh clone has none.
 */

/** Set in the environment: spec files run in any order instead, and Vitest prints the seed. Unit specs of a worker share what is loaded. */
export const RANDOM_ORDER = 'UNBOUNDED_RANDOM_ORDER';

/** Seconds on the machine of the budgets (build/test/report.json), of those that take ten and more. */
export const LONG: readonly (readonly [file: string, seconds: number])[] = [
  ['apps/node-dataplane/src/connectivity/keys/rotation.full.kernel.spec.ts', 60],
  ['apps/node-dataplane/src/connectivity/paths/paths.full.kernel.spec.ts', 40],
  ['apps/node-dataplane/src/agent/troubled-section.full.kernel.spec.ts', 30],
  ['apps/node-keeper/src/relay/relay.kernel.spec.ts', 38],
  ['apps/node-dataplane/src/agent/troubled-section.kernel.spec.ts', 29],
  ['apps/node-dataplane/src/connectivity/kernel/node-addresses.kernel.spec.ts', 21],
  ['apps/node-dataplane/src/data-path/ebpf/migration-tcx.kernel.spec.ts', 21],
  ['apps/node-dataplane/src/connectivity/paths/paths.kernel.spec.ts', 18],
  ['apps/node-dataplane/src/egress/egress.kernel.spec.ts', 18],
  ['apps/node-dataplane/src/data-path/ebpf/migration-clsact.kernel.spec.ts', 17],
  ['apps/node-dataplane/src/egress/section.kernel.spec.ts', 15],
  ['apps/node-dataplane/src/connectivity/dataplane.kernel.spec.ts', 15],
  ['apps/node-dataplane/src/connectivity/health/health.kernel.spec.ts', 14],
  ['apps/node-keeper/src/devices/devices.kernel.spec.ts', 13],
  ['apps/node-dataplane/src/l2/section.kernel.spec.ts', 13],
  ['apps/node-dataplane/src/connectivity/keys/rotation.kernel.spec.ts', 12],
  ['apps/node-dataplane/src/host-firewall/host-firewall.kernel.spec.ts', 11],
  ['bpf/tunnel.kernel.spec.ts', 11],
  ['apps/node-dataplane/src/connectivity/health/echoes.kernel.spec.ts', 10],
  ['apps/static-egress/src/ownership.kube.spec.ts', 25],
  ['apps/cidr-allocator/src/cidr-allocator.kube.spec.ts', 23],
  ['apps/gateway-health/src/relay.kube.spec.ts', 23],
  ['libs/testing/src/chart.kube.spec.ts', 22],
  ['apps/site-membership/src/site-membership.kube.spec.ts', 22],
  ['apps/gateway-health/src/gateway-health.kube.spec.ts', 16],
  ['apps/tailnet-registrar/src/tailnet-registrar.kube.spec.ts', 13],
  ['apps/static-egress/src/static-egress.kube.spec.ts', 12],
];

const secondsOf = ({ moduleId }: TestSpecification): number =>
  LONG.find(([file]) => moduleId.endsWith(`/${file}`))?.[1] ?? 0;

export default class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    return sorted.toSorted((a, b) => secondsOf(b) - secondsOf(a));
  }
}
