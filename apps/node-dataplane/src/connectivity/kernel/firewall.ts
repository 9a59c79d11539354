import { METRICS_PORTS, NFT_TABLE } from '@unbounded/config/ownership';
import type { Nftables } from '@unbounded/nftables';
import type { Endpoint } from '@unbounded/relay-client';
import type { Problem } from '@unbounded/topology';
import type { KernelPlan } from '../../data-path/kernel-plan.ts';
import { KUBE_PROXY_TABLE, type RelayWays } from '../relay/relay-ways.plan.ts';
import type { DeviceState } from './devices.ts';
import { devicesOf, planArpTable, planFirewall } from './firewall.plan.ts';
import type { BoundaryAdditions } from '../../kernel/boundary-additions.ts';
import type { OverlayTraffic } from '../../kernel/overlay-traffic.ts';
import type { SectionTable, TableState } from '../../kernel/section-table.ts';
import { familyOf } from '../../kernel/nft-family.ts';
import { overlayTraffic } from './overlay-traffic.plan.ts';
import type { OwnNetwork } from './own-network.ts';

/** Connectivity's nftables table, in force as planned or reported. */

export interface FirewallOutcome {
  readonly state: TableState;
  readonly problems: readonly Problem[];
}

export interface FirewallParts {
  readonly nft: Nftables;
  readonly table: Pick<SectionTable, 'replace'>;
  /** The one of ARP. */
  readonly arpTable: Pick<SectionTable, 'replace'>;
  /** Where the relay of a plan is, when it is the managed one and has been found. */
  readonly relayWays: (plan: KernelPlan) => readonly Endpoint[];
  /** TCP, of the node's listeners for metrics; absent: the default ones. */
  readonly metricsPorts?: readonly number[];
  /** What sections add to the boundary of the overlay; not set: nothing. */
  readonly additions?: () => readonly BoundaryAdditions[];
  /** Told what belongs to the overlay once the table is in force. Not set: nobody asks. */
  readonly onTraffic?: (traffic: OverlayTraffic) => void;
}

const findRelayWays = async (nft: FirewallParts['nft'], ways: readonly Endpoint[]): Promise<RelayWays> => {
  const families = new Set(ways.map(({ host }) => familyOf(host)));
  const found = await Promise.all([...families].map((family) => nft.hasTable(family, KUBE_PROXY_TABLE)));
  return { ways, isKubeProxyNft: found.includes(true) };
};

const failed = (state: TableState, error: Error): FirewallOutcome => {
  const message = `nftables table ${NFT_TABLE}: ${error.message}; ${CONSEQUENCE[state]}`;
  return { state, problems: [{ reason: 'FirewallFailed', message }] };
};

export const ensureFirewall = async (
  {
    nft,
    table,
    relayWays,
    metricsPorts = METRICS_PORTS,
    additions = () => [],
    onTraffic,
  }: Omit<FirewallParts, 'arpTable'>,
  plan: KernelPlan,
  { tunnels, names, network }: Pick<DeviceState, 'tunnels' | 'names'> & { readonly network?: OwnNetwork },
): Promise<FirewallOutcome> => {
  let ways: RelayWays;
  try {
    ways = await findRelayWays(nft, relayWays(plan));
  } catch (error) {
    return failed('unknown', error as Error);
  }
  const { state, error } = await table.replace(
    planFirewall(plan, {
      tunnels,
      relayWays: ways,
      present: names,
      additions: additions(),
      metricsPorts,
      ...(network && { network }),
    }),
  );
  if (error) return failed(state, error);
  const ofSections = additions().flatMap(({ devices }) => devices ?? []);
  const devices = devicesOf(plan, [...names, ...ofSections]);
  onTraffic?.(overlayTraffic(plan, { tunnels, devices, additions: additions() }));
  return { state, problems: [] };
};

/** Not essential: without it ARP leaves entries that no route uses. */
export const ensureArpTable = async (
  { arpTable }: Pick<FirewallParts, 'arpTable'>,
  plan: KernelPlan,
  { names, network }: Pick<DeviceState, 'names'> & { readonly network?: OwnNetwork },
): Promise<readonly Problem[]> => {
  const { error } = await arpTable.replace(planArpTable(plan, { present: names, ...(network && { network }) }));
  if (!error) return [];
  const message = `nftables table ${NFT_TABLE} of the family arp: ${error.message}; the node answers and believes ARP about addresses of the overlay: has the kernel CONFIG_NF_TABLES_ARP?`;
  return [{ reason: 'FirewallFailed', message }];
};

const CONSEQUENCE: Readonly<Record<TableState, string>> = {
  inSync: '',
  outdated: 'the former rules stay in force and no further tunnel comes up',
  missing: 'without it tunnels stay down: does the kernel have the modules nf_tables, nft_fib_inet, nft_masq, nft_ct?',
  unknown: 'no further tunnel comes up',
};
