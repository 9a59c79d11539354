import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { addressFromBytes, formatAddress } from '@unbounded/ip';
import { PARTNER } from '../../features/partner/layout.ts';
import { kubectlCommand } from '../../kubernetes/control-plane.ts';
import { type LabLayout, namespaceOf } from '../../layout/layout.ts';
import { onNode } from '../../node/node.ts';
import { type CapturedPacket, parsePcap } from '../pcap.ts';
import { startTcpdump } from '../scenario.ts';

/** Which node has an egress address: as the partner sees it by the MACs on its wire, and as the rules say. */

/** Without an interruption by another one. */
interface Holding {
  readonly node: string;
  readonly fromMs: number;
  toMs: number;
  packets: number;
}

export interface Holders {
  /** By address, in the order of time. */
  readonly seen: ReadonlyMap<string, readonly Holding[]>;
  /** Nodes by address, one after the other, as the rules' status named them. */
  readonly named: ReadonlyMap<string, readonly string[]>;
}

const [ARP, IPV6] = [0x0806, 0x86dd];
const [ICMPV6, NEIGHBOR_ADVERTISEMENT] = [58, 136];
const [ETHERNET_SOURCE, ARP_SENDER_IP, ICMPV6_AT, NDP_TARGET] = [6, 28, 54, 62];
const macAt = (frame: Buffer, at: number): string =>
  frame
    .subarray(at, at + 6)
    .toString('hex')
    .replace(/..(?=.)/g, '$&:');
const addressAt = (frame: Buffer, at: number, bytes: number): string =>
  formatAddress(addressFromBytes(frame.subarray(at, at + bytes)));

/** The address that the sender of a frame speaks for. An ARP probe speaks for none (RFC 5227). */
const spokenFor = ({ etherType, protocol, source, frame }: CapturedPacket): string | undefined => {
  if (etherType === ARP) return frame.length >= 42 ? addressAt(frame, ARP_SENDER_IP, 4) : undefined;
  const isAdvertisement = etherType === IPV6 && protocol === ICMPV6 && frame[ICMPV6_AT] === NEIGHBOR_ADVERTISEMENT;
  return isAdvertisement && frame.length >= NDP_TARGET + 16 ? addressAt(frame, NDP_TARGET, 16) : source;
};

const nodesByMac = (layout: LabLayout): Map<string, string> =>
  new Map(
    layout.nodes
      .filter(({ external }) => external?.by === 'interface')
      .map(({ name }) => [onNode(name, 'cat', '/sys/class/net/eth1/address').trim(), name]),
  );

const holdingsIn = (packets: readonly CapturedPacket[], nodes: ReadonlyMap<string, string>): Holders['seen'] => {
  const seen = new Map<string, Holding[]>();
  for (const packet of packets) {
    const mac = macAt(packet.frame, ETHERNET_SOURCE);
    const [address, node] = [spokenFor(packet), nodes.get(mac) ?? mac];
    if (address === undefined) continue;
    const own = seen.get(address) ?? [];
    const last = own.at(-1);
    if (last?.node === node) Object.assign(last, { toMs: packet.atMs, packets: last.packets + 1 });
    else own.push({ node, fromMs: packet.atMs, toMs: packet.atMs, packets: 1 });
    seen.set(address, own);
  }
  return seen;
};

/** What kubectl is told last it has printed by then. */
const PRINTED_MS = 1000;

/** Follows the rules' status; the function that is returned ends it and gives the nodes of each address. */
const followNamed = (layout: LabLayout): (() => Promise<Holders['named']>) => {
  const template = '{{range .status.addresses}}{{if .node}}{{.address}}={{.node}}{{"\\n"}}{{end}}{{end}}';
  const words = ['get', 'staticegressips', '-A', '--watch', '-o', `go-template=${template}`];
  const [program = '', ...args] = [...kubectlCommand(layout), ...words];
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  let text = '';
  child.stdout.on('data', (chunk: Buffer) => (text += chunk.toString()));
  return async () => {
    await delay(PRINTED_MS);
    child.kill();
    const named = new Map<string, string[]>();
    for (const [address = '', node = ''] of text.split(/\s+/).map((word) => word.split('='))) {
      const own = named.get(address) ?? [];
      if (node !== '' && own.at(-1) !== node) named.set(address, [...own, node]);
    }
    return named;
  };
};

/** Looks at the partner's wire while something happens. @param blocks of egress addresses */
export const holdersDuring = async (
  layout: LabLayout,
  blocks: readonly string[],
  act: () => Promise<void>,
): Promise<Holders> => {
  const folder = mkdtempSync(join(tmpdir(), 'holders-'));
  const file = join(folder, 'partner.pcap');
  const nodes = nodesByMac(layout);
  const filter = ['arp', 'icmp6', ...blocks.map((block) => `src net ${block}`)].join(' or ');
  try {
    const stop = await startTcpdump(namespaceOf(PARTNER), ['-i', 'eth0', '-Q', 'in', '-w', file, '-s', '128', filter]);
    const ended = followNamed(layout);
    let named: Holders['named'] = new Map();
    try {
      await act();
    } finally {
      named = await ended();
      await stop();
    }
    return { seen: holdingsIn(parsePcap(readFileSync(file)), nodes), named };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};

/** Addresses that were seen at more nodes, or in another order, than the rules named: two had one at a time. */
export const doubleHolders = ({ seen, named }: Holders): string[] =>
  [...named].flatMap(([address, nodes]) => {
    let at = 0;
    const holdings = seen.get(address) ?? [];
    const isInOrder = holdings.every(({ node }) => {
      const found = nodes.indexOf(node, at);
      at = found;
      return found >= 0;
    });
    const history = holdings.map(
      ({ node, fromMs, packets }) => `${node} ${packets} since ${new Date(fromMs).toISOString()}`,
    );
    return isInOrder ? [] : [`${address} at ${history.join(', ')}; named ${nodes.join(', ')}`];
  });
