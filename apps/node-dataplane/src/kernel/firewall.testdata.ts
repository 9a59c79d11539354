import { createNftables } from '@unbounded/nftables';
import type { Logger } from '@unbounded/telemetry';
import { createFirewallTable } from './firewall-table.ts';
import type { FirewallParts } from './firewall.ts';

/** The table of the namespace in which the process is. */
export const openFirewall = (logger: Logger): Pick<FirewallParts, 'nft' | 'firewall'> => {
  const nft = createNftables();
  return { nft, firewall: createFirewallTable({ nft, logger }) };
};
