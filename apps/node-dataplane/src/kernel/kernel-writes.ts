import type { RouteSocket } from '@unbounded/netlink';
import type { Nftables } from '@unbounded/nftables';
import type { Metrics } from '@unbounded/telemetry';

/** What a section writes into the kernel, counted where it asks for it: at rest it writes nothing. */

type Subject = 'link' | 'address' | 'route' | 'nexthop' | 'rule' | 'neighbour' | 'clsact' | 'nftables' | 'bpf_map';

/** How many writes a call is, by the method's name; all others read. */
type Methods = Readonly<Record<string, (...args: never[]) => number>>;

const one = (): number => 1;
const lengthOf = (list: readonly unknown[]): number => list.length;
const TABLE: Methods = { create: one, replace: one, modify: one, delete: one, apply: lengthOf };
const TRAFFIC_CONTROL: Methods = { ensureClsact: one, deleteClsact: one, deleteFilter: one };
/** A transaction is one. */
const NFTABLES: Methods = { replaceTable: one, replaceSet: one, changeElements: one, deleteTable: one };
const MAP: Methods = { set: one, setAll: one, delete: one, setMany: lengthOf, deleteMany: lengthOf };

const counted = <T extends object>(target: T, methods: Methods, count: (writes: number) => void): T =>
  new Proxy(target, {
    get(object, key) {
      const value: unknown = Reflect.get(object, key);
      if (typeof value !== 'function') return value;
      const writes = Object.hasOwn(methods, key) ? methods[key as string] : undefined;
      return (...args: never[]): unknown => {
        if (writes) count(writes(...args));
        return value.apply(object, args) as unknown;
      };
    },
  });

export interface KernelWrites {
  net(socket: RouteSocket): RouteSocket;
  nft(nft: Nftables): Nftables;
  /** Of an eBPF map. */
  map<M extends object>(map: M): M;
}

export const createKernelWrites = (metrics: Metrics, section: string): KernelWrites => {
  const writes = metrics.counter({
    name: 'unbounded_agent_kernel_writes_total',
    help: 'Kernel writes requested by a section, by subject: objects of rtnetlink, entries of eBPF maps, transactions of nftables. Weights of next-hop groups and WireGuard peers are not counted.',
    labels: ['section', 'subject'],
  });
  writes.inc({ section, subject: 'route' }, 0);
  const of = <T extends object>(subject: Subject, target: T, methods = TABLE): T =>
    counted(target, methods, (count) => writes.inc({ section, subject }, count));
  return {
    net: (socket) => ({
      ...socket,
      links: of('link', socket.links),
      addresses: of('address', socket.addresses),
      routes: of('route', socket.routes),
      nexthops: of('nexthop', socket.nexthops),
      rules: of('rule', socket.rules),
      neighbours: of('neighbour', socket.neighbours),
      trafficControl: of('clsact', socket.trafficControl, TRAFFIC_CONTROL),
    }),
    nft: (nft) => of('nftables', nft, NFTABLES),
    map: (map) => of('bpf_map', map, MAP),
  };
};
