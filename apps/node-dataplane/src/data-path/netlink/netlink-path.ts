import type { RouteSocket } from '@unbounded/netlink';
import type { KernelPlan } from '../kernel-plan.ts';
import { renderPlan } from '../render.ts';
import type { DataPath } from '../port.ts';
import { createGroupIndexes } from '../group-indexes.ts';
import { detachFormerFilters } from '../../bpf/former-filters.ts';
import { removePins } from '../../bpf/pin-folder.ts';
import { isNumber, isRecordOf, stateFile } from '../../state/state-file.ts';
import type { StateFaults } from '../../state/state-faults.ts';
import type { Guard } from '../../connectivity/kernel/tunnel-gate.ts';
import { compareNexthopGroups } from './nexthop-groups.diff.ts';
import { ensureNeighbours, ensureNexthops, removeStaleNexthops } from './route-objects.ts';
import { planRouteObjects, type RouteObjects } from './route-objects.plan.ts';

export interface NetlinkPathOptions {
  /** Where the numbers of next hops and groups are kept. */
  readonly indexFile: string;
  readonly faults?: StateFaults;
  /** Pinned programs and maps that the eBPF data path may have left. */
  readonly pinFolder: string;
}

/** The check of every tunnel is in our nftables table, whose state the caller knows. */
const nftGuard = ({ tunnels }: KernelPlan): Guard => ({
  guarded: new Set(tunnels.map(({ device }) => device)),
  problems: [],
});

/** Next hops, groups of them, and routes in a table of our own: no eBPF anywhere. */
export const openNetlinkPath = (net: RouteSocket, { indexFile, pinFolder, faults }: NetlinkPathOptions): DataPath => {
  const numbers = stateFile(indexFile, isRecordOf(isNumber), faults);
  const indexes = createGroupIndexes(numbers.read());
  let objects: RouteObjects | undefined;
  return {
    groups: 'routes',
    render: (plan) => renderPlan('netlink', plan),
    guard: (plan) => nftGuard(plan),
    async prepare(plan, links, down) {
      // The kernel refuses what leads by a device that is down, and one such route would keep all others out.
      const usable = [...links].filter(([name]) => !down.has(name));
      objects = planRouteObjects(plan, new Map(usable.map(([name, { index }]) => [name, index])), indexes);
      numbers.write(indexes.toJSON());
      const problems = [
        ...(await ensureNeighbours(net, objects.neighbours)),
        ...(await ensureNexthops(net, objects.nexthops)),
      ];
      const groups = objects.groups.map(({ id, members, ...group }) => ({
        ...group,
        index: id,
        members: members.map(({ nexthopId, ...member }) => ({ ...member, record: nexthopId })),
      }));
      return { groups, problems };
    },
    apply: async () => [],
    routes: () => objects?.routes ?? [],
    removeStale: async () => undefined,
    async removeLeftovers() {
      if (!objects) return;
      await removeStaleNexthops(net, new Set(objects.nexthops.map(({ id }) => id)));
      indexes.keepOnly(objects.names);
      numbers.write(indexes.toJSON());
      await detachFormerFilters(net, pinFolder);
      removePins(pinFolder); // unpinned links let go of their devices
    },
    async compare(now) {
      const groups = objects?.groups ?? [];
      return {
        entries: objects ? compareNexthopGroups(objects, await net.nexthops.list(), now) : [],
        groupNames: new Map(groups.map(({ id, name }) => [id, name])),
      };
    },
    detach: () => undefined,
    close: () => undefined,
  };
};
