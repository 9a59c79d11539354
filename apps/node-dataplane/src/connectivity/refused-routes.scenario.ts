/**
 * A peer of a site with plain routing states an address to which the kernel takes no route. Applies the plan for the data path
 * that is the argument in namespaces of its own; prints what was seen as JSON.
 */
import { join } from 'node:path';
import { PIN_FOLDER, PORTS, ROUTE_PROTOCOL, RULE_PRIORITY, STATE_FOLDER } from '@unbounded/config/ownership';
import { createRouteSocket } from '@unbounded/netlink';
import { createMetrics, silentLogger } from '@unbounded/telemetry';
import type { DataPathKind, KernelPlan } from '../data-path/kernel-plan.ts';
import { generatePrivateKey } from '@unbounded/wireguard';
import { run, VIA } from './attached-programs.testdata.ts';
import { applyPlan, type Dataplane } from './dataplane.ts';
import { openEbpfPath } from '../data-path/ebpf/ebpf-path.ts';
import { startHealth } from './health/health.ts';
import { groupMapPin } from '../data-path/ebpf/forwarding-maps.ts';
import { createSysctls } from '../kernel/sysctls.ts';
import { openNetlinkPath } from '../data-path/netlink/netlink-path.ts';
import { noPaths } from './paths/paths.testdata.ts';
import { planFor } from '../testdata.ts';
import { openFirewall } from './kernel/firewall.testdata.ts';

interface Seen {
  readonly reasons: readonly string[];
  readonly isContained: boolean;
  /** A route of ours that no plan has any more, and a device. */
  readonly isStaleGone: boolean;
  readonly hasRule: boolean;
  readonly hasGoodRoute: boolean;
}
/** By the address of the peer. */
export type Report = Readonly<Record<string, Seen>>;

const kind = process.argv[3] as DataPathKind;
const GOOD = '100.65.32.0/24';

const open = (): Dataplane => {
  const net = createRouteSocket();
  const privateKey = generatePrivateKey();
  const objectPath = join(import.meta.dirname, '../../../../bpf/build/unbounded_encap.bpf.o');
  const files = { pinFolder: PIN_FOLDER, indexFile: join(STATE_FOLDER, 'groups.json') };
  return {
    net,
    ...openFirewall(silentLogger),
    path:
      kind === 'ebpf'
        ? openEbpfPath(net, { objectPath, ...files, ...(VIA === undefined ? {} : { via: VIA }) })
        : openNetlinkPath(net, files),
    health: startHealth({
      keys: { current: privateKey },
      port: PORTS.health,
      groups: kind === 'ebpf' ? { mapPin: groupMapPin(PIN_FOLDER) } : 'routes',
      stateFile: join(STATE_FOLDER, 'health.json'),
      logger: silentLogger,
      metrics: createMetrics(),
      onChange: () => undefined,
    }),
    paths: noPaths(),
    sysctls: createSysctls(join(STATE_FOLDER, 'sysctls.json')),
    wireGuard: {
      keyOf: () => ({ privateKey, file: '/etc/wireguard/server.priv' }),
      unitsDir: '/run/unbounded/keeper/units',
    },
    relayWays: () => [],
    pods: () => [],
    logger: silentLogger,
  };
};

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
const dataplane = open();
const report: Record<string, Seen> = {};
for (const address of ['10.1.0.255', '10.77.0.9']) {
  const stale = '192.0.2.0/24';
  const table = kind === 'ebpf' ? '254' : '252';
  const show = (dst: string): string => run('ip', 'route', 'show', dst, 'table', 'all');
  run('ip', 'route', 'replace', stale, 'dev', 'eth0', 'table', table, 'proto', String(ROUTE_PROTOCOL));
  const { problems, isContained } = await applyPlan(dataplane, planWith(address));
  report[address] = {
    reasons: problems.map(({ reason }) => reason),
    isContained,
    isStaleGone: show(stale) === '',
    hasRule: run('ip', 'rule').includes(`${RULE_PRIORITY}:`),
    hasGoodRoute: show(GOOD).includes('via 10.1.0.32'),
  };
}
process.stdout.write(`\n${JSON.stringify(report)}\n`);
process.exit(0);
