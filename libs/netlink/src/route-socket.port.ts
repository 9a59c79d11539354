import type { Link, LinkChanges, LinkRef, LinkSpec } from './model/link.ts';
import type { Netconf } from './model/netconf.ts';
import type {
  IpFamily,
  LinkAddress,
  Neighbour,
  NeighbourSpec,
  Nexthop,
  NexthopSpec,
  Route,
  RouteSpec,
  Rule,
  RuleSpec,
} from './model/route.ts';
import type { BpfFilter, Qdisc } from './model/traffic-control.ts';
import type { NetlinkError } from './netlink-error.ts';

/** Outcome of one change of a batch. */
export type ApplyResult = { readonly ok: true } | { readonly ok: false; readonly error: NetlinkError };

/** One change of a batch. `replace` creates what is missing; `create` fails with EEXIST. */
export type Change<Spec> = { readonly op: 'create' | 'replace' | 'delete'; readonly value: Spec };

/** What can be listed, changed one by one, and changed in packed batches (256 messages a system call). */
export interface Verbs<Spec, Value, Filter> {
  list(filter?: Filter): Promise<Value[]>;
  /** @throws NetlinkError EEXIST when it is there already */
  create(value: Spec): Promise<void>;
  /** Creates or overwrites. */
  replace(value: Spec): Promise<void>;
  /** @throws NetlinkError ENOENT, ESRCH or EADDRNOTAVAIL when it is not there */
  delete(value: Spec): Promise<void>;
  /** Applies in order; a failed change does not stop the others. One result for each change, in the same order. */
  apply(changes: readonly Change<Spec>[]): Promise<ApplyResult[]>;
}

export interface Links {
  list(filter?: { readonly stats?: boolean; readonly master?: number }): Promise<Link[]>;
  /**
   * undefined when there is none. With a number (`Link.parentNetnsId`) of that other namespace, which this needs no more than
   * CAP_NET_ADMIN for. @throws NetlinkError EINVAL: there is no such namespace any more
   */
  get(link: LinkRef, from?: { readonly netnsId?: number }): Promise<Link | undefined>;
  /** Resolves with the new link. @throws NetlinkError EEXIST; ENOTSUP "Unknown device type" without the module */
  create(spec: LinkSpec): Promise<Link>;
  modify(link: LinkRef, changes: LinkChanges): Promise<void>;
  delete(link: LinkRef): Promise<void>;
}

export interface RouteFilter {
  readonly family?: IpFamily;
  readonly table?: number;
  readonly protocol?: number;
  readonly link?: number;
}

export type RouteEvent = RouteChange & {
  /** Of the netlink socket that asked for it; the first one of a process has its pid. 0: the kernel itself, or not told. */
  readonly port: number;
};

type RouteChange =
  | { readonly subject: 'link'; readonly change: 'new' | 'deleted'; readonly value: Link }
  | { readonly subject: 'address'; readonly change: 'new' | 'deleted'; readonly value: LinkAddress }
  | { readonly subject: 'route'; readonly change: 'new' | 'deleted'; readonly value: Route }
  | { readonly subject: 'nexthop'; readonly change: 'new' | 'deleted'; readonly value: Nexthop }
  | { readonly subject: 'rule'; readonly change: 'new' | 'deleted'; readonly value: Rule }
  | { readonly subject: 'neighbour'; readonly change: 'new' | 'deleted'; readonly value: Neighbour }
  | { readonly subject: 'netconf'; readonly change: 'new' | 'deleted'; readonly value: Netconf };

/** What to hear of. `route`, `rule`, `address` and `netconf` mean both families; `neighbour` includes FDB entries. */
export type MonitorGroup = RouteEvent['subject'];

export interface MonitorHandlers {
  onEvent(event: RouteEvent): void;
  /** The kernel had more to tell than the socket could hold: events are lost, list again. The monitor goes on. */
  onResync(): void;
  /** The socket itself failed; the monitor is closed. */
  onError?(error: Error): void;
}

export interface Monitor extends Disposable {
  close(): void;
  /** Does not keep the process alive on its own. */
  unref(): void;
}

/** rtnetlink of one network namespace. Close it, or hold it with `await using`. */
export interface RouteSocket extends AsyncDisposable {
  readonly links: Links;
  readonly addresses: Verbs<LinkAddress, LinkAddress, { readonly family?: IpFamily; readonly link?: number }>;
  readonly routes: Verbs<RouteSpec, Route, RouteFilter>;
  readonly nexthops: Verbs<NexthopSpec, Nexthop, { readonly groupsOnly?: boolean; readonly link?: number }>;
  readonly rules: Verbs<RuleSpec, Rule, { readonly family?: IpFamily }>;
  readonly neighbours: Verbs<
    NeighbourSpec,
    Neighbour,
    { readonly family?: IpFamily | 'bridge'; readonly link?: number }
  >;
  readonly trafficControl: {
    qdiscs(link: number): Promise<Qdisc[]>;
    /** Adds a clsact qdisc if there is none; an existing one is left as it is. */
    ensureClsact(link: number): Promise<void>;
    deleteClsact(link: number): Promise<void>;
    filters(link: number, direction: 'ingress' | 'egress'): Promise<BpfFilter[]>;
    deleteFilter(filter: Pick<BpfFilter, 'link' | 'direction' | 'priority' | 'protocol' | 'handle'>): Promise<void>;
  };
  monitor(
    groups: readonly MonitorGroup[],
    handlers: MonitorHandlers,
    options?: { readonly receiveBufferBytes?: number },
  ): Monitor;
  close(): void;
}
