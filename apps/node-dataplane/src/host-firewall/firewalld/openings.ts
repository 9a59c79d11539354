import { FIREWALL_RULE_COMMENT } from '@unbounded/config/ownership';
import type { Problem } from '@unbounded/topology';
import type { OverlayTraffic } from '../../kernel/overlay-traffic.ts';
import type { NodeEvent } from '../../section.port.ts';
import type { HostFirewallMode } from '../host-firewall.port.ts';
import type { Firewalld } from './firewalld.ts';
import {
  foreignObjects,
  type FoundObjects,
  NO_OBJECTS,
  type Objects,
  OVERLAY_ZONE,
  planFirewalld,
  planFirewalldChanges,
} from './firewalld.plan.ts';

/** Our zone and policies in firewalld, as the mode wants them, and what is to say about it. */

export interface FirewalldLook {
  readonly isRunning: boolean;
  /** Undefined: it cannot be told. */
  readonly isOpen: boolean | undefined;
  readonly problems: readonly Problem[];
  readonly events: readonly NodeEvent[];
}

const reported = (devices: readonly string[]): Problem => ({
  reason: 'HostFirewallBlocks',
  message: `firewalld drops packets of the overlay: ${devices.join(', ')} in no zone of it; --host-firewall=Accept (chart: node-dataplane.hostFirewall) lets them pass`,
});

const failed = (error: unknown): Problem => ({
  reason: 'HostFirewallNotManaged',
  message: `firewalld: ${(error as Error).message}; what it drops of the overlay stays dropped`,
});

const inOtherZones = (devices: ReadonlyMap<string, string>): Problem[] =>
  [...devices].map(([device, zone]) => ({
    reason: 'HostFirewallBlocks',
    message:
      `firewalld has device ${device} of the overlay in zone ${zone}, whose rules hold for pods then: ` +
      `firewall-cmd --permanent --zone=${zone} --remove-interface=${device}; firewall-cmd --zone=${zone} --remove-interface=${device}`,
  }));

const REVERSE_PATHS: Problem = {
  reason: 'HostFirewallBlocks',
  message:
    'firewalld drops packets of IPv6 that come out of a tunnel, since the way back to their source is another device (table inet firewalld, chain filter_PREROUTING): ' +
    'set IPv6_rpfilter=no (from 2.0 on: loose) in /etc/firewalld/firewalld.conf, then firewall-cmd --reload',
};

const OPENED: NodeEvent = {
  type: 'Normal',
  reason: 'HostFirewallOpened',
  action: 'OpenFirewall',
  note: `zone ${OVERLAY_ZONE} and two policies of firewalld let pass what belongs to the overlay; it was reloaded for that`,
};

/** The reload that brings our objects into being ends what firewalld has at runtime alone: it is not tried over and over. */
const RELOAD_EVERY_MS = 600_000;

const withoutDevices = (wanted: Objects, taken: ReadonlyMap<string, string>): Objects => {
  const zone = wanted.zone[OVERLAY_ZONE];
  if (!zone) return wanted;
  const interfaces = (zone['interfaces'] as readonly string[]).filter((device) => !taken.has(device));
  return { ...wanted, zone: { [OVERLAY_ZONE]: { ...zone, interfaces } } };
};

const refuseForeign = (found: FoundObjects): void => {
  const foreign = foreignObjects(found);
  if (foreign.length > 0)
    throw new Error(
      `${foreign.join(', ')}: the name is ours, and the description is not ${JSON.stringify(FIREWALL_RULE_COMMENT)}: give it another name`,
    );
};

export interface FirewalldOpenings {
  /** @param traffic undefined: it is not known yet, and what stands stays */
  readonly ensure: (mode: HostFirewallMode, traffic: OverlayTraffic | undefined) => Promise<FirewalldLook>;
}

export const createFirewalldOpenings = (
  firewalld: Firewalld,
  elapsed = (): number => performance.now(),
): FirewalldOpenings => {
  let reloadedMs = -Infinity;

  const reload = async (): Promise<void> => {
    if (elapsed() - reloadedMs < RELOAD_EVERY_MS)
      throw new Error('its reload did not bring our zone and policies into force: see `firewall-cmd --check-config`');
    reloadedMs = elapsed();
    await firewalld.reload();
  };
  const settle = async (wanted: Objects): Promise<boolean> => {
    const found = await firewalld.read();
    refuseForeign(found);
    const { steps, needsReload } = planFirewalldChanges(wanted, found);
    for (const step of steps) await firewalld.take(step);
    if (needsReload) await reload();
    return needsReload;
  };
  const report = async (traffic: OverlayTraffic | undefined): Promise<FirewalldLook> => {
    await settle(NO_OBJECTS);
    const others = await firewalld.devicesOfOthers();
    const inNoZone = traffic?.devices.filter((device) => !others.has(device)) ?? [];
    const problems = inNoZone.length > 0 ? [reported(inNoZone)] : [];
    return { isRunning: true, isOpen: problems.length === 0, problems, events: [] };
  };
  return {
    async ensure(mode, traffic) {
      let isRunning = false;
      try {
        isRunning = await firewalld.isRunning();
        if (!isRunning) return { isRunning, isOpen: undefined, problems: [], events: [] };
        if (mode === 'Report') return await report(traffic);
        if (!traffic) return { isRunning, isOpen: undefined, problems: [], events: [] };
        const others = await firewalld.devicesOfOthers();
        const taken = new Map([...others].filter(([device]) => traffic.devices.includes(device)));
        const isNew = await settle(withoutDevices(planFirewalld(traffic), taken));
        const isStrict = traffic.hasIpv6 && (await firewalld.checksReversePaths());
        const problems = [...inOtherZones(taken), ...(isStrict ? [REVERSE_PATHS] : [])];
        return { isRunning, isOpen: problems.length === 0, problems, events: isNew ? [OPENED] : [] };
      } catch (error) {
        return { isRunning, isOpen: undefined, problems: [failed(error)], events: [] };
      }
    },
  };
};
