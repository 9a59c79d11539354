import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { LabNode } from '../../layout/layout.ts';
import { checkout } from '../../machine/paths.ts';
import { onNode } from '../../node/node.ts';

/** Ports at which something on a node takes packets of others, and what the documentation says of them. */

export interface OpenPort {
  readonly protocol: 'tcp' | 'udp';
  readonly port: number;
  /** An address, or * for all of the node's. */
  readonly address: string;
}

const LOOPBACK = /^(127\.|\[?::1\]?$|\[?::ffff:127\.)/;

/** `ss -Hlntu` as ports; what listens on loopback alone is none. Each once. */
const portsOf = (printed: string): OpenPort[] => {
  const ports = printed
    .split('\n')
    .filter(Boolean)
    .map((line) => {
      const [protocol = '', , , , local = ''] = line.trim().split(/\s+/);
      const at = local.lastIndexOf(':');
      const address = local.slice(0, at).replace(/%.*$/, '');
      const isAny = ['0.0.0.0', '[::]', '*'].includes(address);
      return { protocol, port: Number(local.slice(at + 1)), address: isAny ? '*' : address } as OpenPort;
    })
    .filter(({ address }) => !LOOPBACK.test(address));
  const texts = new Set(ports.map((port) => JSON.stringify(port)));
  return [...texts].sort().map((text) => JSON.parse(text) as OpenPort);
};

export const openPorts = (node: LabNode): OpenPort[] => portsOf(onNode(node.name, 'ss', '-Hlntu'));

/** Of the same in a program's own network: `pgrep -f` finds it on the node. */
export const openPortsOf = (node: string, pattern: string): OpenPort[] => {
  const pid = onNode(node, 'pgrep', '-of', pattern).trim();
  return portsOf(onNode(node, 'nsenter', '-t', pid, '-n', 'ss', '-Hlntu'));
};

/** What the table "Ports and interfaces" of docs/operations.md names: ports, and ranges of them, by protocol. */
export const documentedPorts = (): {
  readonly protocol: 'tcp' | 'udp';
  readonly from: number;
  readonly to: number;
}[] => {
  const text = readFileSync(join(checkout, 'docs/operations.md'), 'utf8');
  const section = /^## Ports and interfaces\n(.*?)^## /ms.exec(text)?.[1] ?? '';
  const rows = section.split('\n').filter((line) => line.startsWith('|'));
  return rows.flatMap((row) => {
    const [, protocol, ports] = /\| (TCP|UDP) ([^|]*)\|/.exec(row) ?? [];
    if (protocol === undefined || ports === undefined) return [];
    const kind = protocol === 'TCP' ? ('tcp' as const) : ('udp' as const);
    const isOpenEnded = /and up/.test(ports);
    return [...ports.replace(/from \d+ to \d+/, '').matchAll(/\d{4,5}/g)].map(([number]) => ({
      protocol: kind,
      from: Number(number),
      to: isOpenEnded ? 65_419 : Number(number),
    }));
  });
};
