/**
 * Somebody takes a route and a next-hop group of the netlink data path away. Applies a plan in namespaces of its own, and prints what is
 * read of it as JSON. (The eBPF data path's maps: dataplane.scenario.ts.)
 */
import { NEXTHOP_IDS } from '@unbounded/config/ownership';
import { planFor } from '../testdata.ts';
import { json, run } from './attached-programs.testdata.ts';
import { applyPlan } from './dataplane.ts';
import { openTestDataplane } from './dataplane.testdata.ts';
import { readForwarding } from './forwarding.ts';

/** Each entry that is not in sync. */
export type Report = Readonly<Record<'before' | 'routeTaken' | 'groupTaken' | 'after', readonly string[]>> & {
  readonly tables: readonly string[];
};

run('ip', 'link', 'set', 'lo', 'up');
run('ip', 'link', 'add', 'eth0', 'type', 'veth', 'peer', 'name', 'wire');
run('ip', 'addr', 'add', '10.1.0.30/24', 'dev', 'eth0');
for (const name of ['wire', 'eth0']) run('ip', 'link', 'set', name, 'up');
run('ip', 'route', 'add', 'default', 'via', '10.1.0.1');
const dataplane = openTestDataplane('netlink');
const plan = planFor('w1', 'VXLAN', 'netlink');

const read = async () => {
  const { routes } = await applyPlan(dataplane, plan);
  return async () => await readForwarding(dataplane, routes, { dataplane: 'netlink', now: Date.now });
};
const ask = await read();
const differing = async (): Promise<string[]> =>
  (await ask()).entries.flatMap(({ table, key, state, wanted, present }) =>
    state === 'InSync' ? [] : [`${table} ${key} ${state}: ${JSON.stringify([wanted, present])}`],
  );
const tables = [...new Set((await ask()).entries.map(({ table }) => table))].sort();
const before = await differing();
run('ip', 'route', 'del', '100.66.0.0/16', 'table', '252');
const routeTaken = await differing();
await applyPlan(dataplane, plan);
const groups = (json('ip', '-j', 'nexthop') as { id: number; group?: unknown }[]).filter(
  ({ id, group }) => group !== undefined && id >= NEXTHOP_IDS.first && id <= NEXTHOP_IDS.last,
);
for (const { id } of groups) run('ip', 'nexthop', 'del', 'id', String(id));
const groupTaken = await differing();
await applyPlan(dataplane, plan);
const report: Report = { tables, before, routeTaken, groupTaken, after: await differing() };
process.stdout.write(`\n${JSON.stringify(report)}\n`);
process.exit(0);
