import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { PIN_FOLDER, PORTS, STATE_FOLDER } from '@unbounded/config/ownership';
import { createRouteSocket } from '@unbounded/netlink';
import { createMetrics, silentLogger } from '@unbounded/telemetry';
import type { KernelPlan } from '../../data-path/kernel-plan.ts';
import { cleanUp } from '../../agent/cleanup.ts';
import type { BoundaryAdditions } from '../../kernel/boundary-additions.ts';
import { applyPlan, type Dataplane } from '../dataplane.ts';
import { openEbpfPath } from '../../data-path/ebpf/ebpf-path.ts';
import { startHealth } from '../health/health.ts';
import type { GroupReport } from '../health/messages.ts';
import { openNetlinkPath } from '../../data-path/netlink/netlink-path.ts';
import { noPaths } from '../paths/paths.testdata.ts';
import { groupMapPin } from '../../data-path/ebpf/forwarding-maps.ts';
import { createSysctls } from '../../kernel/sysctls.ts';
import { openFirewall } from './firewall.testdata.ts';

/**
 * A node of a small network: applies the plans that come line by line, and answers each with the problems, until its input
 * ends (node-addresses-lab.testdata.ts starts it in namespaces of its own). Beside the answers it tells which peers are healthy,
 * and where its next-hop groups lead.
 */

export interface NodeArgs {
  readonly dataplane: 'ebpf' | 'netlink';
  readonly privateKey: string;
  /** Of other sections, to the boundary. */
  readonly additions?: readonly BoundaryAdditions[];
}
/** clean: as at an uninstall. */
export type NodeRequest = { readonly plan: KernelPlan } | { readonly clean: true };
export type NodeAnswer =
  | { readonly problems: readonly string[]; readonly passes: number }
  | { readonly healthy: readonly string[]; readonly unhealthy: readonly string[] }
  | { readonly groups: readonly GroupReport[] };

const { dataplane, privateKey, additions = [] } = JSON.parse(process.argv[2]!) as NodeArgs;
const tell = (answer: NodeAnswer): void => void process.stdout.write(`${JSON.stringify(answer)}\n`);

const net = createRouteSocket();
const indexFile = join(STATE_FOLDER, 'groups.json');
const health = startHealth({
  keys: { current: privateKey },
  port: PORTS.health,
  groups: dataplane === 'ebpf' ? { mapPin: groupMapPin(PIN_FOLDER) } : 'routes',
  stateFile: join(STATE_FOLDER, 'health.json'),
  logger: silentLogger,
  metrics: createMetrics(),
  onGroups: () => tell({ groups: health.groups() }),
  onChange: () => {
    const named = (isWanted: (state: string) => boolean): string[] =>
      health.states().flatMap(({ node, family, state }) => (isWanted(state) ? [`${node} ${family}`] : []));
    tell({
      healthy: named((state) => state === 'Healthy' || state === 'Degraded'),
      unhealthy: named((state) => state === 'Unhealthy'),
    });
  },
});
const parts: Dataplane = {
  net,
  ...openFirewall(silentLogger),
  path:
    dataplane === 'ebpf'
      ? openEbpfPath(net, {
          objectPath: join(import.meta.dirname, '../../../../../bpf/build/unbounded_encap.bpf.o'),
          pinFolder: PIN_FOLDER,
          indexFile,
        })
      : openNetlinkPath(net, { indexFile, pinFolder: PIN_FOLDER }),
  health,
  paths: noPaths(),
  sysctls: createSysctls(join(STATE_FOLDER, 'sysctls.json')),
  wireGuard: { keyOf: () => ({ privateKey, file: '' }), unitsDir: '/run/unbounded/keeper/units' },
  relayWays: () => [],
  additions: () => additions,
  pods: () => [],
  logger: silentLogger,
};

const apply = async (plan: KernelPlan): Promise<NodeAnswer> => {
  for (let passes = 1; ; passes++) {
    const { again, problems } = await applyPlan(parts, plan);
    if (!again || passes === 5) return { problems: problems.map(({ message }) => message), passes };
  }
};

const folders = {
  cniConfDir: '/etc/cni/net.d',
  cniSocket: '/run/unbounded/cni.sock',
  cniBinDir: '/opt/cni/bin',
  cniReservationsDir: '/var/lib/cni/networks/unbounded',
  unitsDir: '/run/unbounded/keeper/units',
  bpffsDir: PIN_FOLDER,
  stateDir: STATE_FOLDER,
};
const clean = async (): Promise<NodeAnswer> => {
  await health.stop();
  parts.path.close();
  await cleanUp(folders, () => undefined);
  return { problems: [], passes: 0 };
};

for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line) as NodeRequest;
  tell('plan' in request ? await apply(request.plan) : await clean());
}
process.exit(0);
