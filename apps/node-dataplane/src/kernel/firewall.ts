import { NFT_TABLE } from '@unbounded/config/ownership';
import type { Nftables, TableSpec } from '@unbounded/nftables';
import type { Endpoint } from '@unbounded/relay-client';
import type { Logger } from '@unbounded/telemetry';
import type { Problem } from '@unbounded/topology';
import type { KernelPlan } from '../data-path/kernel-plan.ts';
import { KUBE_PROXY_TABLE, type RelayWays } from '../relay/relay-ways.plan.ts';
import type { DeviceState } from './devices.ts';
import { planFirewall } from './firewall.plan.ts';
import type { FirewallMetrics } from './firewall-metrics.ts';
import { familyOf } from './nft-family.ts';

/**
 * How our nftables table is after a pass: as planned; there, but not as planned, because the kernel refused the change;
 * missing; or not known, because the kernel did not answer.
 */
export type FirewallState = 'asPlanned' | 'outdated' | 'missing' | 'unknown';

export interface FirewallOutcome {
  readonly state: FirewallState;
  readonly problems: readonly Problem[];
}

export interface FirewallParts {
  readonly nft: Nftables;
  /** Where the relay of a plan is, when it is the managed one and has been found. */
  readonly relayWays: (plan: KernelPlan) => readonly Endpoint[];
  readonly firewallMetrics?: FirewallMetrics;
  readonly logger: Logger;
}

const findRelayWays = async (nft: Nftables, ways: readonly Endpoint[]): Promise<RelayWays> => {
  const families = new Set(ways.map(({ host }) => familyOf(host)));
  const found = await Promise.all([...families].map((family) => nft.hasTable(family, KUBE_PROXY_TABLE)));
  return { ways, isKubeProxyNft: found.includes(true) };
};

const write = async ({ nft, firewallMetrics, logger }: FirewallParts, table: TableSpec): Promise<void> => {
  firewallMetrics?.observe(await nft.readCounters(table.family, table.name)); // a new table counts from zero
  if (await nft.matches(table)) return;
  await nft.replaceTable(table);
  firewallMetrics?.restarted();
  logger.info({ table: table.name }, 'wrote the nftables table');
};

const stateAfterFailure = async (nft: Nftables): Promise<FirewallState> => {
  try {
    return (await nft.hasTable('inet', NFT_TABLE)) ? 'outdated' : 'missing';
  } catch {
    return 'unknown';
  }
};

export const ensureFirewall = async (
  parts: FirewallParts,
  plan: KernelPlan,
  { tunnels, names }: Pick<DeviceState, 'tunnels' | 'names'>,
): Promise<FirewallOutcome> => {
  const { nft, relayWays } = parts;
  try {
    await write(parts, planFirewall(plan, tunnels, await findRelayWays(nft, relayWays(plan)), names));
    return { state: 'asPlanned', problems: [] };
  } catch (error) {
    const state = await stateAfterFailure(nft);
    const message = `nftables table ${NFT_TABLE}: ${(error as Error).message}; ${CONSEQUENCE[state]}`;
    return { state, problems: [{ reason: 'FirewallFailed', message }] };
  }
};

const CONSEQUENCE: Readonly<Record<FirewallState, string>> = {
  asPlanned: '',
  outdated: 'the former rules stay in force and no further tunnel comes up',
  missing: 'without it tunnels stay down: does the kernel have the modules nf_tables, nft_fib_inet, nft_masq, nft_ct?',
  unknown: 'no further tunnel comes up',
};
