/**
 * A node with so many Networks, and so many endpoints in each, of which one is its own: what the first pass takes, what one without changes
 * takes, and by how much the heap is larger behind it. For tools/bench l2-scale; prints it as JSON.
 */
import { endpointKey } from '@unbounded/l2';
import { endpoint, fdbEntry, neighbor, network } from '@unbounded/l2/testdata';
import { printReport } from '../printed-report.testdata.ts';
import { addPort, createL2Node } from './l2-node.testdata.ts';
import { portName } from './names.ts';

const [networks, perNetwork] = process.argv.slice(2).map(Number) as [number, number];
const NODES = 20;

const endpoints = Array.from({ length: networks }, (_, net) =>
  Array.from({ length: perNetwork }, (__, at) => {
    const one = endpoint(at + 1, at === 0 ? 'n1' : `n${(at % NODES) + 2}`, { network: `lan${net}` });
    return { ...one, metadata: { namespace: 'shop', name: `e${net}-${at}` } };
  }),
).flat();
const node = createL2Node('n1');
node.objects = {
  networks: Array.from({ length: networks }, (_, net) => network(`lan${net}`, {}, { number: net + 1, mtu: 1366 })),
  endpoints,
  fdbEntries: endpoints.map((one) => fdbEntry(one)),
  neighbors: endpoints.flatMap((one) => one.spec.addresses.map((ip) => neighbor(one, ip))),
};
node.locators = new Map(Array.from({ length: NODES + 2 }, (_, at) => [`n${at + 1}`, `fd53:0:0:${at + 1}::/64`]));
for (const one of endpoints.filter(({ spec }) => spec.node === 'n1')) addPort(portName(endpointKey(one)));

globalThis.gc?.();
const heapBefore = process.memoryUsage().heapUsed;
const section = await node.open();
const timed = async (): Promise<number> => {
  const start = performance.now();
  const { report } = await section.pass();
  if (report.problems.length > 0) throw new Error(report.problems[0]!.message);
  return performance.now() - start;
};
const firstPassMs = await timed();
const restPassMs = Math.min(await timed(), await timed(), await timed());
globalThis.gc?.();
await printReport({
  ...{ networks, firstPassMs, restPassMs },
  entries: node.objects.fdbEntries.length + node.objects.neighbors.length,
  heapMebibytes: (process.memoryUsage().heapUsed - heapBefore) / (1 << 20),
});
process.exit();
