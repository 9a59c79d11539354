import { groupKey, nexthopGroup } from '@unbounded/bpf-maps';
import { openPinnedMap } from '@unbounded/libbpf-ts';
import { createRouteSocket } from '@unbounded/netlink';
import type { GroupKernel } from '../connectivity/health/group-kernel.port.ts';
import { createMapGroups } from './ebpf/map-groups.ts';
import { createNexthopGroups } from './netlink/nexthop-groups.ts';
import type { GroupStore } from './group-store.ts';

/** Writes weights into the groups of a data path. */
export const openGroupStore = (store: GroupStore, netnsFd?: number): GroupKernel =>
  store === 'routes'
    ? createNexthopGroups(createRouteSocket(netnsFd === undefined ? {} : { netnsFd }))
    : createMapGroups(openPinnedMap(store.mapPin, groupKey, nexthopGroup));
