import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { hostOf } from '../layout/addresses.ts';
import { inNamespace } from '../machine/command.ts';
import { pidOf, startDaemon } from '../machine/daemon.ts';
import { gatewayName, type LabLayout, namespaceOf, WAN, worldIps } from '../layout/layout.ts';
import { checkout, nodeJs, state } from '../machine/paths.ts';

/** DNS names of gateways, where no cloud gives them addresses: a zone in a file, and a server for it in the outside world. */

export type Zone = Readonly<Record<string, readonly string[]>>;

const zoneFile = join(state, 'names.json');
const DAEMON = 'name-server';
export const NAME_SERVER_PORT = 53;

export const readZone = (): Zone => (existsSync(zoneFile) ? (JSON.parse(readFileSync(zoneFile, 'utf8')) as Zone) : {});

/** The server answers by it from now on. */
export const writeZone = (zone: Zone): void => {
  writeFileSync(`${zoneFile}.new`, JSON.stringify(zone));
  renameSync(`${zoneFile}.new`, zoneFile);
};

/** Addresses of the server, in the outside world; none where no name is used. */
export const nameServers = (layout: LabLayout): string[] =>
  layout.options.topology === 'mapped' ? worldIps(layout) : [];

/** What the program that resolves names has to be told. */
export const dnsFlags = (layout: LabLayout): string[] => {
  const servers = nameServers(layout).map((ip) => `${hostOf(ip)}:${NAME_SERVER_PORT}`);
  return servers.length > 0 ? [`--dns-servers=${servers.join(',')}`] : [];
};

/** Every gateway has a name, whether its annotation uses it or not. */
export const startNameServer = (layout: LabLayout): void => {
  const [address] = nameServers(layout);
  if (address === undefined || pidOf(DAEMON) !== undefined) return;
  const gateways = layout.nodes.filter(({ role }) => role === 'gateway');
  writeZone(Object.fromEntries(gateways.map(({ name, external }) => [gatewayName(name), external?.ips ?? []])));
  startDaemon(DAEMON, [
    ...inNamespace(namespaceOf(WAN.worldName)),
    nodeJs,
    join(checkout, 'tools/rig/src/underlay/name-server.ts'),
    address,
    String(NAME_SERVER_PORT),
  ]);
};
