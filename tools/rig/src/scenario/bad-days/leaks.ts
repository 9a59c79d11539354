import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { LabNode } from '../../layout/layout.ts';
import { namespaceOf } from '../../layout/layout.ts';
import { type Packet, parsePcap } from '../pcap.ts';
import { startCapture } from '../scenario.ts';

/** Packets between pods that are seen on an uplink outside of every tunnel. */

const IPV6 = 0x86dd;
const isPods4 = (address: string | undefined): boolean =>
  /^100\.(6[4-9]|[7-9]\d|1[01]\d|12[0-7])\./.test(address ?? '');
const isPods6 = (address: Buffer): boolean => address[0] === 0xfd && address[1] === 0x64;

const inClear = ({ etherType, source, destination, frame }: Packet): boolean =>
  etherType === IPV6
    ? frame.length >= 54 && (isPods6(frame.subarray(22, 38)) || isPods6(frame.subarray(38, 54)))
    : isPods4(source) || isPods4(destination);

const described = ({ etherType, source, destination, frame }: Packet): string =>
  etherType === IPV6 ? `IPv6 ${frame.subarray(22, 54).toString('hex')}` : `${source} > ${destination}`;

/** Watches the uplinks of nodes; the function that is returned ends it and tells what it saw in the clear. */
export const watchUplinks = async (folder: string, nodes: readonly LabNode[]): Promise<() => Promise<string[]>> => {
  const uplinks = nodes.flatMap((node) =>
    ['eth0', ...(node.external?.by === 'interface' ? ['eth1'] : [])].map((device) => ({ node, device })),
  );
  const captures = await Promise.all(
    uplinks.map(async ({ node, device }) => {
      const file = join(folder, `${node.name}-${device}.pcap`);
      return { node, device, file, stop: await startCapture(namespaceOf(node.name), device, file) };
    }),
  );
  return async () => {
    for (const { stop } of captures) await stop();
    return captures.flatMap(({ node, device, file }) => {
      const packets = parsePcap(readFileSync(file));
      if (packets.length === 0) throw new Error(`the capture at ${device} of ${node.name} saw nothing at all`);
      const seen = new Set(packets.filter(inClear).map(described));
      return [...seen].map((text) => `${node.name} ${device}: ${text}`);
    });
  };
};
