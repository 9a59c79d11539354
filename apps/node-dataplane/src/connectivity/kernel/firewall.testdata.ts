import { createNftables } from '@unbounded/nftables';
import type { Logger } from '@unbounded/telemetry';
import { CONNECTIVITY } from '@unbounded/config/ownership';
import { CONNECTIVITY_CHAINS } from '../../kernel/base-chains.ts';
import type { FirewallParts } from './firewall.ts';
import { createSectionTable, type SectionTableParts } from '../../kernel/section-table.ts';

/** Connectivity's table. */
export const openConnectivityTable = (
  parts: Pick<SectionTableParts, 'nft' | 'drops' | 'logger'> & Partial<Pick<SectionTableParts, 'family'>>,
) =>
  createSectionTable({
    family: 'inet',
    ...parts,
    section: CONNECTIVITY,
    baseChains: Object.values(CONNECTIVITY_CHAINS),
  });

/** That of the namespace in which the process is. */
export const openFirewall = (logger: Logger): Pick<FirewallParts, 'nft' | 'table' | 'arpTable'> => {
  const nft = createNftables();
  const table = openConnectivityTable({ nft, logger });
  return { nft, table, arpTable: openConnectivityTable({ nft, family: 'arp', logger }) };
};
