/**
 * Routes that the kernel refuses: a peer of a site with plain routing states an address to which it takes none; the UDP port of a
 * tunnel is somebody else's, and the tunnel stays down. Applies the plans for the data path that is the argument in namespaces of its
 * own; prints what was seen as JSON.
 */
import { PORTS, ROUTE_PROTOCOL, RULE_PRIORITY } from '@unbounded/config/ownership';
import type { DataPathKind, KernelPlan } from '../data-path/kernel-plan.ts';
import { run } from './attached-programs.testdata.ts';
import { applyPlan } from './dataplane.ts';
import { openTestDataplane } from './dataplane.testdata.ts';
import { planFor } from '../testdata.ts';

interface Seen {
  readonly reasons: readonly string[];
  readonly isContained: boolean;
  /** A route of ours that no plan has any more, and a device. */
  readonly isStaleGone: boolean;
  readonly hasRule: boolean;
  readonly hasGoodRoute: boolean;
}
/** By the address of the peer, and `tunnel`. */
export type Report = Readonly<Record<string, Seen>>;

const kind = process.argv[3] as DataPathKind;
const GOOD = '100.65.32.0/24';

const planWith = (address: string): KernelPlan => {
  const plan = planFor('w1', 'None', kind);
  const peer = plan.routes.find(({ prefix }) => prefix === '100.65.31.0/24')!;
  return {
    ...plan,
    routes: [
      ...plan.routes.filter((route) => route !== peer),
      { ...peer, via: { gateways: [address] } },
      { ...peer, prefix: GOOD, via: { gateways: ['10.1.0.32'] } },
    ],
  };
};

run('ip', 'link', 'set', 'lo', 'up');
run('ip', 'link', 'add', 'eth0', 'type', 'veth', 'peer', 'name', 'wire');
run('ip', 'addr', 'add', '10.1.0.30/24', 'brd', '+', 'dev', 'eth0');
for (const name of ['wire', 'eth0']) run('ip', 'link', 'set', name, 'up');
run('ip', 'route', 'add', 'default', 'via', '10.1.0.1');
const dataplane = openTestDataplane(kind);
const report: Record<string, Seen> = {};
const apply = async (name: string, plan: KernelPlan): Promise<void> => {
  const stale = '192.0.2.0/24';
  const table = kind === 'ebpf' ? '254' : '252';
  const show = (dst: string): string => run('ip', 'route', 'show', dst, 'table', 'all');
  run('ip', 'route', 'replace', stale, 'dev', 'eth0', 'table', table, 'proto', String(ROUTE_PROTOCOL));
  const { problems, isContained } = await applyPlan(dataplane, plan);
  report[name] = {
    reasons: problems.map(({ reason }) => reason),
    isContained,
    isStaleGone: show(stale) === '',
    hasRule: run('ip', 'rule').includes(`${RULE_PRIORITY}:`),
    hasGoodRoute: show(GOOD).includes('via 10.1.0.32'),
  };
};
for (const address of ['10.1.0.255', '10.77.0.9']) await apply(address, planWith(address));
run('ip', 'link', 'add', 'theirs', 'type', 'vxlan', 'id', '5', 'dstport', String(PORTS.vxlan), 'dev', 'eth0');
run('ip', 'link', 'set', 'theirs', 'up');
const tunneled = planFor('w1', 'VXLAN', kind);
const good = { prefix: GOOD, via: { gateways: ['10.1.0.32'] }, mtuBytes: 1400 };
await apply('tunnel', { ...tunneled, routes: [...tunneled.routes, good] });
process.stdout.write(`\n${JSON.stringify(report)}\n`);
process.exit(0);
