import { UNMANAGED_DEVICES as OUR_DEVICES } from '@unbounded/config/manager-drop-ins';
import { isNftTable } from '@unbounded/config/ownership';
import type { Row } from './row.ts';
import type { BaseChain, Hook } from './ruleset.ts';

/** Which chains of others refuse packets, and what is done about it: by the agent, or before the installation by a person. */

const IPTABLES_TABLES: ReadonlySet<string> = new Set(['filter', 'mangle', 'nat', 'raw', 'security']);
const IPTABLES_CHAINS: ReadonlySet<string> = new Set(['FORWARD', 'INPUT', 'OUTPUT']);

/** Of Kubernetes: it refuses what is for Services without endpoints, and nothing else. */
const KUBE_PROXY = 'kube-proxy';

const PORTS = 'the ports of the tunnels (docs/operations.md#ports-and-interfaces)';
const DEVICES = OUR_DEVICES.join(', ');

const OWN: Readonly<Record<Hook, string>> = {
  forward: `accept there what comes in or goes out by ${DEVICES}`,
  input: `accept there ${PORTS} from your nodes, and what comes in by ${DEVICES}`,
  output: `accept there ${PORTS}, and what goes out by ${DEVICES}`,
};
const FIREWALLD =
  'the agent gives firewalld a zone and policies for the overlay; with IPv6 in it set IPv6_rpfilter=no (from 2.0 on: loose) in /etc/firewalld/firewalld.conf';
const OPENED = 'the agent lets the overlay pass; what rules refuse by address, port, set or state stays refused';

const isOfIptables = ({ family, table, name, isLegacy }: BaseChain): boolean =>
  isLegacy || ((family === 'ip' || family === 'ip6') && IPTABLES_TABLES.has(table) && IPTABLES_CHAINS.has(name));

const remedyFor = (chain: BaseChain): string => {
  if (isOfIptables(chain) && chain.table === 'filter' && chain.hook !== 'output') return OPENED;
  if (chain.table === 'firewalld') return FIREWALLD;
  const own = `${OWN[chain.hook]}, before it is refused: no other table can`;
  return chain.policy === 'drop' ? own : `see that the rules spare the overlay, or ${own}`;
};

const nameOf = (chain: BaseChain): string => {
  if (!isOfIptables(chain)) return `${chain.family} ${chain.table} ${chain.name}`;
  return `${chain.family}tables${chain.isLegacy ? '-legacy' : ''} ${chain.table} ${chain.name}`;
};

const refusalOf = ({ hook, policy, refusals }: BaseChain): string => {
  const rules = refusals === 1 ? ', 1 rule drops or rejects' : `, ${refusals} rules drop or reject`;
  return `hook ${hook}, policy ${policy}${refusals === 0 ? '' : rules}`;
};

const isOfOthers = ({ table }: BaseChain): boolean => !isNftTable(table) && table !== KUBE_PROXY;

/** Nothing: no chain of others refuses anything. */
export const firewallRows = (chains: readonly BaseChain[]): Row[] =>
  chains
    .filter((chain) => isOfOthers(chain) && (chain.policy === 'drop' || chain.refusals > 0))
    .map((chain) => ({
      name: nameOf(chain),
      state: 'drops',
      advice: `${refusalOf(chain)}: ${remedyFor(chain)}`,
    }));
