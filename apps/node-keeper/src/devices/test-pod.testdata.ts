import { execFileSync } from 'node:child_process';
import { readFileSync, readlinkSync } from 'node:fs';
import { parseAddress } from '@unbounded/ip';

/** A network namespace that stands for a pod's, with an interface to another one, which stands for everything else. */

const run = (...argv: string[]): string => execFileSync(argv[0]!, argv.slice(1), { encoding: 'utf8' });
/** One process for all lines: each start of one takes longer than what it does. */
const ipBatch = (namespace: string, lines: readonly string[]): void =>
  void execFileSync('ip', ['-n', namespace, '-batch', '-'], { input: lines.join('\n'), stdio: 'pipe' });
/** Also where it fails. */
const runs = (...argv: string[]): boolean => {
  try {
    execFileSync(argv[0]!, argv.slice(1), { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
};
const [NODE_MAC, NODE, NODE_6] = ['02:00:00:00:00:01', '10.1.0.1', 'fd00:1::1'];

export interface TestPod {
  readonly netns: string;
  /** Runs `ip` there. */
  readonly ip: (...argv: string[]) => string;
  /** Packets to the address that left by eth0, of three. */
  readonly leaving: (address: string) => number;
  /** Routes of the table, as `ip` prints them. */
  readonly routes: (table: number) => string[];
  readonly rules: () => string[];
  /** Of nftables. */
  readonly tables: () => string;
  /** Packets from one address to another that have come in by the device and were not dropped. */
  readonly arriving: (from: string, to: string, send: () => void) => number;
  readonly setIPv6: (isOn: boolean) => void;
  readonly remove: () => void;
}

export const createTestPod = (name: string): TestPod => {
  const outside = `${name}-out`;
  const ip = (...argv: string[]): string => run('ip', '-n', name, ...argv);
  for (const one of [name, outside]) run('ip', 'netns', 'add', one);
  const inPod = (...argv: string[]) => ['ip', 'netns', 'exec', name, ...argv] as const;
  ipBatch(name, [
    `link add eth0 type veth peer name eth0 netns ${outside}`,
    'link set lo up',
    'link set eth0 addrgenmode none up',
    'addr add 10.1.0.2/24 dev eth0',
    'addr add fd00:1::2/64 dev eth0 nodad',
  ]);
  ipBatch(outside, [`link set eth0 addrgenmode none address ${NODE_MAC} up`]);
  ipBatch(name, [
    ...[NODE, NODE_6].map((address) => `neigh add ${address} lladdr ${NODE_MAC} dev eth0`),
    ...[NODE, NODE_6].map((address) => `route add default via ${address}`),
  ]);
  // What is sent before the kernel has noticed that the link is up is dropped.
  for (let looks = 0; looks < 1000 && !ip('link', 'show', 'eth0').includes('state UP'); looks++);
  const nft = (...argv: string[]): string => run('ip', 'netns', 'exec', outside, 'nft', ...argv);
  nft('add table netdev seen; add chain netdev seen in { type filter hook ingress device eth0 priority 0; }');
  const lines = (text: string): string[] =>
    text
      .split('\n')
      .map((line) => line.trim().replaceAll(/\s+/g, ' '))
      .filter((line) => line !== '');
  return {
    netns: `/run/netns/${name}`,
    ip,
    leaving(address) {
      const family = address.includes(':') ? 'ip6' : 'ip';
      nft(`flush chain netdev seen in; add rule netdev seen in ${family} daddr ${address} counter`);
      runs(...inPod('ping', '-c3', '-i0.01', '-W0.05', address));
      return Number(/packets (\d+)/.exec(nft('list chain netdev seen in'))![1]);
    },
    arriving(from, to, send) {
      const inside = (...argv: string[]): string => run(...inPod('nft', ...argv));
      const family = from.includes(':') ? 'ip6' : 'ip';
      inside(
        'add table inet seen; add chain inet seen in { type filter hook prerouting priority 0; }; ' +
          `add rule inet seen in iifname ts0 ${family} saddr ${from} ${family} daddr ${to} counter`,
      );
      send();
      const seen = Number(/packets (\d+)/.exec(inside('list chain inet seen in'))![1]);
      inside('delete table inet seen');
      return seen;
    },
    routes: (table) =>
      ['-4', '-6'].flatMap((family) =>
        // A table that never was is an error.
        lines(run('sh', '-c', `ip -n ${name} ${family} route show table ${table} 2>/dev/null || true`)),
      ),
    rules: () => ['-4', '-6'].flatMap((family) => lines(ip(family, 'rule'))).filter((rule) => /^5\d+:/.test(rule)),
    tables: () => run(...inPod('nft', 'list', 'tables')),
    setIPv6: (isOn) =>
      void run(
        ...inPod(
          'sysctl',
          '-qw',
          `net.ipv6.conf.all.disable_ipv6=${isOn ? 0 : 1}`,
          `net.ipv6.conf.default.disable_ipv6=${isOn ? 0 : 1}`,
        ),
      ),
    remove: () => {
      for (const one of [name, outside]) runs('ip', 'netns', 'delete', one);
    },
  };
};

export interface ProcessSeen {
  readonly isInOwnNamespace: boolean;
  readonly capabilities: readonly string[];
  /** What file descriptor 3 is. */
  readonly third: string;
  readonly argv: readonly string[];
}

export const lookAt = (pid: number): ProcessSeen => ({
  isInOwnNamespace: readlinkSync(`/proc/${pid}/ns/net`) === readlinkSync('/proc/self/ns/net'),
  capabilities: [...readFileSync(`/proc/${pid}/status`, 'utf8').matchAll(/^Cap(?:Inh|Prm|Eff|Amb):\s+(\w+)$/gm)].map(
    ([, bits]) => bits!,
  ),
  third: readlinkSync(`/proc/${pid}/fd/3`),
  argv: readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').slice(0, -1),
});

/** A datagram without data, as it would come out of the device. */
export const datagram = (from: string, to: string): Uint8Array => {
  const [source, destination] = [from, to].map((text) => Buffer.from(addressBytes(text)));
  const udp = Buffer.from([0x23, 0x28, 0x23, 0x28, 0, 8, 0, 0]);
  if (from.includes(':'))
    return Buffer.concat([Buffer.from([0x60, 0, 0, 0, 0, udp.length, 17, 64]), source!, destination!, udp]);
  const header = Buffer.from([0x45, 0, 0, 20 + udp.length, 0, 0, 0, 0, 64, 17, 0, 0, ...source!, ...destination!]);
  let sum = 0;
  for (let at = 0; at < header.length; at += 2) sum += header.readUInt16BE(at);
  sum = (sum & 0xffff) + (sum >>> 16);
  header.writeUInt16BE(~sum & 0xffff, 10);
  return Buffer.concat([header, udp]);
};

const addressBytes = (text: string): Uint8Array => {
  const { family, value } = parseAddress(text);
  const hex = value.toString(16).padStart(family === 4 ? 8 : 32, '0');
  return Buffer.from(hex, 'hex');
};
