import type { RouteSocket } from '@unbounded/netlink';
import type { Problem } from '@unbounded/topology';
import { bringUp, type DeviceState } from './devices.ts';
import { type DeviceSpec, isTunnel } from './devices.plan.ts';
import type { TableState } from '../../kernel/section-table.ts';

/**
 * Tunnels are up only while what comes out of them is checked: a device without encryption only with its source check, and
 * none comes up before the nftables table is as planned.
 */

export interface Guard {
  /** Unencrypted tunnel devices whose source check is in force. */
  readonly guarded: ReadonlySet<string>;
  readonly problems: readonly Problem[];
}

type Wanted = 'up' | 'down' | 'asItIs';

const wantedOf = (spec: DeviceSpec, firewall: TableState, { guarded }: Guard): Wanted => {
  const isEncrypted = spec.purpose === 'wireguard'; // it knows by its keys who sent a packet
  if (!isEncrypted && (firewall === 'missing' || !guarded.has(spec.name))) return 'down';
  return firewall === 'inSync' ? 'up' : 'asItIs';
};

interface Settled {
  readonly problems: readonly Problem[];
  /** Names of tunnel devices that are there and down: the kernel takes no route and no next hop by them. */
  readonly down: ReadonlySet<string>;
}

/** Sets tunnel devices up or down, as their checks stand. One without its settings goes down with its check, but does not come up. */
export const settleTunnels = async (
  net: RouteSocket,
  { specs, links, unsettled }: Pick<DeviceState, 'links' | 'unsettled'> & { readonly specs: readonly DeviceSpec[] },
  firewall: TableState,
  guard: Guard,
): Promise<Settled> => {
  const problems: Problem[] = [];
  const down = new Set<string>();
  for (const spec of specs.filter(isTunnel)) {
    const isSettled = links.has(spec.name);
    const link = links.get(spec.name) ?? unsettled.get(spec.name);
    if (!link) continue;
    const wanted = wantedOf(spec, firewall, guard);
    if (!link.up) down.add(spec.name);
    try {
      if (wanted === 'up' && !link.up && isSettled) {
        await bringUp(net, spec, link);
        down.delete(spec.name);
      }
      if (wanted === 'down' && link.up) {
        await net.links.modify(link.index, { up: false });
        down.add(spec.name);
      }
    } catch (error) {
      problems.push({ reason: 'DeviceFailed', message: `device ${spec.name}: ${(error as Error).message}` });
    }
  }
  return { problems, down };
};
