import { NODE_ECHO_PORT } from '../../checks/node-echo.ts';
import type { LabLayout } from '../../layout/layout.ts';
import { onNode, tryOnNode } from '../../node/node.ts';
import { type HostFirewall, nodesOfLan, ownFiles } from './firewalls.ts';

/** The real firewalld, with a system bus of the node. */

const START = `
mkdir -p /run/dbus
[ -S /run/dbus/system_bus_socket ] || dbus-daemon --system --fork --nopidfile
firewalld --nopid </dev/null >/dev/null 2>&1
for i in $(seq 100); do [ "$(firewall-cmd --state 2>&1)" != running ] || exit 0; sleep 0.1; done
exit 1`;
const start = (node: string): void => void onNode(node, 'sh', '-ec', START);
const stop = (node: string): void =>
  void onNode(node, 'sh', '-ec', 'pkill -x firewalld; while pgrep -x firewalld >/dev/null; do sleep 0.05; done');
const cmd = (node: string, ...args: string[]): string => onNode(node, 'firewall-cmd', ...args);

/** As ufw's: what Kubernetes itself needs between nodes of the LAN is let in. */
const begin = (node: string, layout: LabLayout): void => {
  ownFiles(node, 'firewalld', ['/etc/firewalld']);
  // As our condition asks for where the overlay has IPv6.
  onNode(node, 'sed', '-i', 's/^IPv6_rpfilter=.*/IPv6_rpfilter=no/', '/etc/firewalld/firewalld.conf');
  const rules = nodesOfLan(node, layout).flatMap((address) => {
    const from = `rule family=${address.includes(':') ? 'ipv6' : 'ipv4'} source address=${address}`;
    return [
      `${from} port port=1-65535 protocol=tcp accept`,
      `${from} port port=${NODE_ECHO_PORT} protocol=udp accept`,
    ].map((rule) => `--add-rich-rule=${rule}`);
  });
  onNode(node, 'firewall-offline-cmd', ...rules);
  start(node);
};

const LISTS = ['--list-all-zones', '--list-all-policies', '--get-ipsets'] as const;

/** Zones and policies begin at the start of a line, and what they have is indented. */
const blocks = (text: string): string[] => text.split(/\n(?=\S)/).map((block) => block.trim());

export const firewalld = (layout: LabLayout): HostFirewall => ({
  name: 'firewalld',
  begin: (node) => begin(node, layout),
  isOpen: (node) => {
    const devices = tryOnNode(node, 'firewall-cmd', '--zone=unbounded', '--list-interfaces') ?? '';
    const peers = tryOnNode(node, 'firewall-cmd', '--ipset=unbounded-peers4', '--get-entries') ?? '';
    return devices.includes('cbr0') && peers !== '';
  },
  saved: (node) => LISTS.flatMap((list) => [cmd(node, list), cmd(node, '--permanent', list)]).join('\n'),
  withoutOurs: (saved) =>
    blocks(saved)
      .filter((block) => !block.startsWith('unbounded'))
      .join('\n'),
  takeOurs: (node) => {
    const remove = (kind: string, ...names: string[]): void => {
      for (const name of names) cmd(node, '--permanent', `--delete-${kind}=${name}`);
    };
    remove('policy', 'unbounded-forward', 'unbounded-input');
    remove('zone', 'unbounded');
    remove('ipset', 'unbounded-peers4', 'unbounded-peers6', 'unbounded-entries4', 'unbounded-entries6');
    cmd(node, '--reload');
  },
  reported: /firewalld drops packets of the overlay: .*cbr0/,
  disturbances: {
    'a reload': (node) => void cmd(node, '--reload'),
    'a restart': (node) => {
      stop(node);
      start(node);
    },
    'a flush of all rules': (node) => {
      onNode(node, 'nft', 'flush', 'table', 'inet', 'firewalld');
      cmd(node, '--reload');
    },
  },
});
