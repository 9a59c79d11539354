import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { kubectl } from '../kubernetes/control-plane.ts';
import type { LabLayout } from '../layout/layout.ts';
import { isNeighborDiscovery, isWireGuard, type Packet, parsePcap } from './pcap.ts';
import { inPod, namespaceOf, podOn, startCapture } from './scenario.ts';

/** What passes between the sites, as a stranger on the WAN sees it. */

const MARKER = 'MARKER-the-quick-brown-fox';
/** The host outside that pods reach through NAT. */
const OUTSIDE = '203.0.113.250';
const API_SERVER_PORT = 6443;
/** Nodes and pods of the lab. */
const INSIDE = /^(10\.|100\.(6[4-9]|[7-9]\d|1[01]\d|12[0-7])\.)/;

export interface WanTraffic {
  /** Packets of WireGuard between the sites. */
  readonly wireGuard: number;
  /** Neither WireGuard nor TLS to the API server, nor routers that look for each other: "SOURCE > DESTINATION protocol N". */
  readonly others: readonly string[];
  /** With an address of a node's LAN or of a pod: "SOURCE > DESTINATION". */
  readonly inner: readonly string[];
  /** Packets that hold what a pod sent, readable. */
  readonly readable: number;
}

/** What is in a capture on the WAN. */
export const wanTrafficOf = (packets: readonly Packet[]): WanTraffic => {
  const between = packets.filter(
    ({ source, destination }) => source && destination && source !== OUTSIDE && destination !== OUTSIDE,
  );
  const isTls = ({ sourcePort, destinationPort }: Packet): boolean =>
    sourcePort === API_SERVER_PORT || destinationPort === API_SERVER_PORT;
  return {
    wireGuard: between.filter(isWireGuard).length,
    others: between
      .filter((packet) => !isWireGuard(packet) && !isTls(packet) && !isNeighborDiscovery(packet))
      .map(({ source, destination, protocol }) => `${source} > ${destination} protocol ${protocol}`),
    inner: packets
      .filter(({ source, destination }) => INSIDE.test(source ?? '') || INSIDE.test(destination ?? ''))
      .map(({ source, destination }) => `${source} > ${destination}`),
    readable: packets.filter(({ frame }) => frame.includes(MARKER)).length,
  };
};

/** Captures on the WAN while pods of two sites talk. @param file for the capture */
export const captureWan = async (layout: LabLayout, file: string): Promise<WanTraffic> => {
  const [from, to] = [await podOn(layout, 's1-w1'), await podOn(layout, 's2-w1')];
  const stop = await startCapture(namespaceOf('wan'), 'wan0', file);
  for (let i = 0; i < 5; i++) await inPod(layout, from, ['fetch', `http://${to.ip}:8080/${MARKER.repeat(20)}`]);
  await inPod(layout, to, ['stream', `${from.ip}:9001`, '8']);
  await kubectl(layout, ['logs', to.name, '--tail=1']);
  await delay(500);
  await stop();
  return wanTrafficOf(parsePcap(readFileSync(file)));
};
