/**
 * A node on which one Network has more ports than a frame is copied to, and whose maps others have filled, when a pod of another Network
 * starts (crowded.kernel.spec.ts). Prints what the kernel of the section reports, before and after, as JSON.
 */
import { L2_MAPS } from '@unbounded/bpf-maps/l2';
import { parseAddress, parsePrefix } from '@unbounded/ip';
import { endpointKey, type L2Plan, planL2 } from '@unbounded/l2';
import { endpoint, network, snapshotOf } from '@unbounded/l2/testdata';
import { createRouteSocket } from '@unbounded/netlink';
import { createNftables } from '@unbounded/nftables';
import { createMetrics, silentLogger as logger } from '@unbounded/telemetry';
import { L2_CHAINS } from '../kernel/base-chains.ts';
import { createKernelWrites } from '../kernel/kernel-writes.ts';
import { createSectionTable } from '../kernel/section-table.ts';
import { printReport } from '../printed-report.testdata.ts';
import { createL2Kernel } from './l2-kernel.ts';
import { portName } from './names.ts';
import { addPort } from './l2-node.testdata.ts';

export interface Report {
  readonly before: readonly string[];
  readonly after: readonly string[];
  readonly isInForce: boolean;
}

const PORTS_OF_FIRST = 33;
const networks = [
  network('lan', { broadcast: 'Replicate' }),
  network('other', { broadcast: 'Replicate' }, { number: 8, mtu: 1366 }),
];
const first = Array.from({ length: PORTS_OF_FIRST }, (_, at) => endpoint(at + 1, 'n1'));
const second = endpoint(200, 'n1', { network: 'other' });

const ownPorts = [...first, second].map((one) => [endpointKey(one), portName(endpointKey(one))] as const);
const planOf = (endpoints: readonly (typeof second)[]): L2Plan =>
  planL2({ ...snapshotOf('n1', networks, endpoints), ports: new Map(ownPorts) });
/** Other nodes have as many addresses in the first Network as there is room for. */
const crowd = Array.from({ length: L2_MAPS.unbounded_l2_neighbors.maxEntries }, (_, at) => ({
  ...{ network: 7, mac: '02:00:00:00:00:fe', ip: parseAddress(`2001:db8:1::${at.toString(16)}`) },
}));
const crowded = (plan: L2Plan): L2Plan => ({ ...plan, neighbors: [...crowd, ...plan.neighbors] });

for (const [, device] of ownPorts) addPort(device);
const [net, nft, metrics] = [createRouteSocket(), createNftables(), createMetrics()];
const kernelWrites = createKernelWrites(metrics, 'l2');
const kernel = createL2Kernel({
  ...{ net, nft, metrics, dataPathPins: undefined },
  countWrites: (map) => kernelWrites.map(map),
  table: createSectionTable({ nft, section: 'l2', family: 'inet', baseChains: Object.values(L2_CHAINS), logger }),
  objectPath: new URL('../../../../bpf/build/unbounded_l2.bpf.o', import.meta.url).pathname,
  pinFolder: '/sys/fs/bpf/unbounded/v1/l2/1',
});
const apply = (plan: L2Plan) =>
  kernel.apply(plan, { locator: parsePrefix('fd53:0:0:1::/64'), locators: [], native: [], overlayDevices: [] });
const reasons = ({ problems }: Awaited<ReturnType<typeof apply>>): readonly string[] =>
  problems.map(({ reason }) => reason);

const before = await apply(crowded(planOf(first)));
const after = await apply(crowded(planOf([...first, second])));
await printReport({ before: reasons(before), after: reasons(after), isInForce: after.isInForce } satisfies Report);
process.exit();
