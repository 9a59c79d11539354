import type { Row } from './row.ts';
import type { BaseChain } from './ruleset.ts';

/** Tailscale as a VPN of the machine: it has a routing table and chains of its own, which it leaves behind when it is killed. */

const ROUTE_TABLE = '52';

export interface TailscaleTraces {
  readonly isRunning: boolean;
  readonly chains: readonly BaseChain[];
  /** Of rules, as `ip -j rule` prints them. */
  readonly ruleTables: readonly string[];
}

export const tailscaleRows = ({ isRunning, chains, ruleTables }: TailscaleTraces): Row[] => {
  const own = [...new Set(chains.flatMap(({ leadsTo }) => leadsTo))].filter((name) => name.startsWith('ts-'));
  const hasTable = ruleTables.includes(ROUTE_TABLE);
  if (!isRunning && own.length === 0 && !hasTable) return [];
  const parts = [
    ...(own.length > 0
      ? [`its chains ${own.join(', ')} drop packets from 100.64.0.0/10 that come by other devices than its own`]
      : []),
    ...(hasTable ? [`its routing table ${ROUTE_TABLE} is asked before ours`] : []),
  ];
  const advice = [parts.join(', '), 'choose pod CIDRs outside of the addresses of your tailnet and its subnet routes'];
  return [{ name: 'Tailscale', state: isRunning ? 'runs' : 'left', advice: advice.filter(Boolean).join(': ') }];
};
