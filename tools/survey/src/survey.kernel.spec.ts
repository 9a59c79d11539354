import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { rootWith } from './settings.testdata.ts';

/** `tools/doctor` in a network namespace of its own, with real rules, and settings and processes of a root folder of its own. */

const doctor = join(import.meta.dirname, '../../doctor');

const NFT = `
table inet admin {
  map banned { type ipv4_addr : verdict; elements = { 192.0.2.1 : drop, 192.0.2.2 : jump refused }; }
  chain forward { type filter hook forward priority 0; policy drop; iifname "eth0" accept; }
  chain input { type filter hook input priority 0; ip saddr vmap @banned; ip saddr vmap { 192.0.2.3 : drop }; jump refused; }
  chain output { type filter hook output priority 0; meta l4proto tcp accept; }
  chain refused { tcp dport 22 reject with tcp reset; udp dport 53 drop; }
}
table bridge admin {
  chain forward { type filter hook forward priority 0; policy drop; }
}
table inet firewalld {
  chain filter_FORWARD { type filter hook forward priority 10; reject with icmpx admin-prohibited; }
}
table inet unbounded {
  chain boundary { type filter hook forward priority 0; policy drop; }
}
table inet others {
  chain prerouting { type filter hook prerouting priority 0; policy drop; }
}
`;
const IPTABLES = `
iptables-nft -P FORWARD DROP
iptables-nft -N ts-forward
iptables-nft -A FORWARD -j ts-forward
iptables-nft -A ts-forward -s 100.64.0.0/10 -m comment --comment Tailscale -j DROP
iptables-nft -A FORWARD -j REJECT
iptables-legacy -A INPUT -j DROP
ip rule add priority 5270 lookup 52
`;
const SETTINGS = {
  'proc/1/comm': 'systemd\n',
  'proc/20/comm': 'systemd-network\n',
  'proc/21/comm': 'NetworkManager\n',
  'proc/22/comm': 'tailscaled\n',
  'proc/23/comm': 'firewalld\n',
  'etc/NetworkManager/conf.d/10-mine.conf': '[keyfile]\nunmanaged-devices=interface-name:wg*;interface-name:cbr0\n',
};

/** Its rows, without what is said of programs and the kernel. */
const rowsOf = (rules: string, files: Readonly<Record<string, string>>): string[] => {
  using folder = rootWith(files);
  const script = `set -e\n${rules}\nexec "$0" --root "$1"`;
  const printed = execFileSync('unshare', ['--net', 'sh', '-c', script, doctor, folder.root], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const lines = printed.split('\n');
  return lines.slice(lines.findIndex((line) => line.startsWith('Firewalls')));
};
const cells = (line: string): string[] =>
  /^ {2}(\S.*?) +(drops|runs|open|off|disturbs) +(.*)$/.exec(line)?.slice(1) ?? [line];

test('names every chain of others that refuses packets, network managers with the file to add, and Tailscale', () => {
  const lines = rowsOf(`nft -f - <<'END'${NFT}END${IPTABLES}`, SETTINGS);
  const rows = lines.filter((line) => /^ {2}\S/.test(line)).map(cells);
  const told = rows.map(([name, state, advice]) => `${name} ${state} ${advice!.split(':')[0]}`);
  expect(told.slice(0, 7).sort()).toEqual(
    [
      'bridge admin forward drops hook forward, policy drop',
      'inet admin forward drops hook forward, policy drop',
      'inet admin input drops hook input, policy accept, 4 rules drop or reject',
      'inet firewalld filter_FORWARD drops hook forward, policy accept, 1 rule drops or rejects',
      'iptables filter FORWARD drops hook forward, policy drop, 2 rules drop or reject',
      'iptables-legacy filter INPUT drops hook input, policy accept, 1 rule drops or rejects',
      'firewalld runs what it refuses is above, in its table firewalld or in iptables',
    ].sort(),
  );
  expect(told.slice(7)).toEqual([
    expect.stringMatching(/^systemd-networkd disturbs ManageForeignRoutes=yes \(default\), /),
    'NetworkManager disturbs unmanaged-devices of [keyfile] does not name unbounded0, unbounded-echo, vxlan0, geneve0, ipip0, egress0, l2in0, l2out0',
    expect.stringMatching(
      /^Tailscale runs its chains ts-forward drop packets .*, its routing table 52 is asked before ours$/,
    ),
  ]);
  expect(lines).toEqual(
    expect.arrayContaining([
      '      /etc/systemd/networkd.conf.d/90-unbounded.conf:',
      '      ManageForeignRoutes=no',
      '      /etc/NetworkManager/conf.d/90-unbounded.conf:',
      expect.stringMatching(/^ {6}unmanaged-devices\+=interface-name:cbr0;/),
    ]),
  );
});

test('a machine without any of them is told to be open, and no table of iptables is made by looking', () => {
  const lines = rowsOf('', { 'proc/1/comm': 'init\n' });
  expect(lines.filter((line) => /^ {2}\S/.test(line)).map((line) => cells(line).slice(0, 2))).toEqual([
    ['nftables, iptables', 'open'],
    ['systemd-networkd', 'off'],
    ['NetworkManager', 'off'],
  ]);
  const look = `${doctor} >/dev/null; nft list tables; cat /proc/self/net/ip_tables_names`;
  expect(execFileSync('unshare', ['--net', 'sh', '-c', look], { encoding: 'utf8', stdio: 'pipe' }).trim()).toBe('');
});
