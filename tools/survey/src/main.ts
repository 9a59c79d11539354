import { parseArgs } from 'node:util';
import { MANAGER_DROP_INS } from '@unbounded/config/manager-drop-ins';
import { firewallRows } from './firewalls.ts';
import { processesIn, readChains, readRuleTables } from './machine.ts';
import { networkManagerRow } from './network-manager.ts';
import { networkdRow } from './networkd.ts';
import { type Row, rowText } from './row.ts';
import { tailscaleRows } from './tailscale.ts';

/** Prints what on this machine would drop or disturb the overlay: `--root FOLDER` has settings and processes of another root folder. */

const survey = (root: string): readonly (readonly [title: string, rows: readonly Row[]])[] => {
  const processes = processesIn(root);
  const isRunning = (manager: string): boolean =>
    MANAGER_DROP_INS.some((one) => one.manager === manager && processes.has(one.process));
  const { chains, unknown } = readChains();
  const refusing = firewallRows(chains);
  const open: Row = {
    name: 'nftables, iptables',
    state: 'open',
    advice: 'no chain at forward, input or output refuses packets',
  };
  const firewalld: Row[] = processes.has('firewalld')
    ? [{ name: 'firewalld', state: 'runs', advice: 'what it refuses is above, in its table firewalld or in iptables' }]
    : [];
  return [
    [
      'Firewalls of this machine, as a node (docs/requirements.md#firewalls)',
      [...(refusing.length + unknown.length === 0 ? [open] : refusing), ...unknown, ...firewalld],
    ],
    [
      'Network managers and other VPNs (docs/requirements.md#other-vpns-and-network-managers)',
      [
        networkdRow(root, isRunning('systemd-networkd')),
        networkManagerRow(root, isRunning('NetworkManager')),
        ...tailscaleRows({ isRunning: processes.has('tailscaled'), chains, ruleTables: readRuleTables() }),
      ],
    ],
  ];
};

try {
  const { values } = parseArgs({ options: { root: { type: 'string', default: '/' } } });
  const parts = survey(values.root).map(([title, rows]) => [title, ...rows.map(rowText)].join('\n'));
  process.stdout.write(`${parts.join('\n\n')}\n`);
} catch (error) {
  process.stderr.write(`survey: ${(error as Error).message}\n`);
  process.exitCode = 1;
}
