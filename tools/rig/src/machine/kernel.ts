import { tryRun } from './command.ts';

/** What this kernel can do, found by trying in a namespace that goes at once. */

const hasLink = (...kind: string[]): boolean =>
  tryRun(['unshare', '--net', 'ip', 'link', 'add', 'ub-probe', 'type', ...kind]) !== undefined;

/** Without it WireGuard runs in user space, under node-keeper. */
export const hasWireGuard = (): boolean => hasLink('wireguard');

/** Tunnels that a kernel may lack, as `ip link` knows them. */
const OPTIONAL = { GENEVE: 'geneve', IPIP: 'ipip' } as const;

/** What an agent finds on this kernel: all nodes have the same. */
export const kernelProtocols = (): string[] => {
  const found = Object.entries(OPTIONAL).filter(([, kind]) => hasLink(kind, 'external'));
  return [...found.map(([protocol]) => protocol), 'None', 'VXLAN', 'WireGuard'].sort();
};

/** Delay, loss and reordering of packets: tc-netem(8), module sch_netem. */
export const hasNetem = (): boolean =>
  tryRun(['unshare', '--net', 'tc', 'qdisc', 'add', 'dev', 'lo', 'root', 'netem', 'delay', '1ms']) !== undefined;
