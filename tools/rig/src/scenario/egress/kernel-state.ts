import { DEVICES, EGRESS_ROUTE_PROTOCOL } from '@unbounded/config/ownership';
import { onNode } from '../../node/node.ts';

/** What a node's kernel holds, of us and of others. */

/** Rules, tables, marks and addresses like ours, of somebody else. */
const FOREIGN = [
  'nft add table inet mine',
  "nft 'add chain inet mine c { type filter hook prerouting priority -86; }'",
  'nft add rule inet mine c meta mark 0x10 counter accept',
  'ip rule add priority 30000 fwmark 0x10/0xf0 lookup 4711',
  'ip -6 rule add priority 30000 fwmark 0x10/0xf0 lookup 4711',
  'ip route add 192.0.2.0/24 dev lo table 4711',
  'ip address add 192.0.2.9/32 dev lo preferred_lft 0',
];
export const addForeign = (node: string): void => {
  for (const line of FOREIGN) onNode(node, 'sh', '-c', line);
};

const LOOKS: Readonly<Record<string, string>> = {
  tables: 'nft list tables',
  foreign: "nft list table inet mine | sed 's/packets [0-9]* bytes [0-9]*//'",
  rules: 'ip rule; ip -6 rule',
  routes: "ip route show table all; ip -6 route show table all | sed 's/ expires [0-9]*sec//'",
  addresses: 'ip -br address',
  settings: 'sysctl -a 2>/dev/null | grep -E "^net\\.ipv[46]\\.(conf\\.(all|default|eth0|eth1)\\.|ip_forward)"',
};

/** Of every node, in no order that the kernel has chosen. */
export const kernelOf = (node: string): Record<string, string[]> =>
  Object.fromEntries(
    Object.entries(LOOKS).map(([what, command]) => [what, onNode(node, 'sh', '-c', command).split('\n').sort()]),
  );

/** What is there of egress, and what is not there any more of others. */
export const remainsOf = (node: string, before: Readonly<Record<string, string[]>>): string[] => {
  const now = kernelOf(node);
  const ours = new RegExp(`${DEVICES.egress}|203\\.0\\.113\\.20[0-7]|:203::20[0-7]`);
  return [
    ...now['tables']!.filter((table) => table.includes('unbounded')),
    ...[...now['rules']!, ...now['routes']!].filter((line) => line.includes(`proto ${EGRESS_ROUTE_PROTOCOL}`)),
    ...now['addresses']!.filter((line) => ours.test(line)),
    ...(now['foreign']!.join() === before['foreign']!.join() ? [] : ['another foreign table']),
    ...(now['rules']!.filter((line) => line.includes('4711')).length === 2 ? [] : ['other foreign rules']),
    ...(now['addresses']!.join().includes('192.0.2.9/32') ? [] : ['no foreign address']),
  ];
};
