import { existsSync } from 'node:fs';
import { RELAY_STATE } from '@unbounded/config/ownership';
import { relayState } from '@unbounded/keeper-protocol';
import type { Check } from './checks.ts';
import { inNamespace, run } from './command.ts';
import { pidOf, startDaemon } from './daemon.ts';
import { switchPort } from './fabric.ts';
import { hasRelay, type LabLayout, namespaceOf, RELAY_PORT, routerName, WAN } from './layout.ts';
import { readPlans } from './links.ts';
import { initPid } from './node.ts';
import { appBundle, nodeJs } from './paths.ts';
import { tryOnNode } from './scenario.ts';

/** A relay in the outside world, and borders of sites that let no UDP pass. */

export const RELAY_DAEMON = 'relay';
const HEALTH_PORT = 9994;
/** nobody, nogroup */
const UNPRIVILEGED = ['setpriv', '--reuid', '65534', '--regid', '65534', '--clear-groups', '--no-new-privs'];

/** The relay of the checkout, as a process without privileges. */
export const startRelay = (layout: LabLayout): void => {
  if (!hasRelay(layout) || pidOf(RELAY_DAEMON) !== undefined) return;
  const flags = ['--addr', `:${RELAY_PORT}`, '--health-port', String(HEALTH_PORT)];
  startDaemon(RELAY_DAEMON, [
    ...inNamespace(namespaceOf(WAN.worldName)),
    ...UNPRIVILEGED,
    ...[nodeJs, appBundle('relay'), ...flags],
  ]);
};

const TABLE = 'block_udp';

/** Of a site: what its router passes on between LAN and WAN. What stays in the LAN is bridged, and never comes by here. */
const routerTable = `table inet ${TABLE} {
  chain forward { type filter hook forward priority filter - 10
    iifname wan0 meta l4proto udp drop
    oifname wan0 meta l4proto udp drop
  }
}
`;

/** A gateway with an interface of its own on the WAN passes no router: the port of the switch is its border. */
const switchTable = (ports: readonly string[]): string => `table bridge ${TABLE} {
  chain forward { type filter hook forward priority filter
    iifname { ${ports.join(', ')} } meta l4proto udp drop
    oifname { ${ports.join(', ')} } meta l4proto udp drop
  }
}
`;

export interface Border {
  readonly namespace: string;
  readonly family: 'inet' | 'bridge';
  /** What drops UDP there, in both directions. */
  readonly table: string;
}

/** Where what goes into and out of the sites passes. */
export const bordersOf = (layout: LabLayout): Border[] => {
  const ports = layout.nodes
    .filter(({ external }) => external?.by === 'interface')
    .map(({ name }) => switchPort(layout, name, 'eth1').port);
  const routers = layout.sites.map(({ name }): Border => {
    return { namespace: namespaceOf(routerName(name)), family: 'inet', table: routerTable };
  });
  const atSwitch: Border = { namespace: namespaceOf(WAN.name), family: 'bridge', table: switchTable(ports) };
  return ports.length === 0 ? routers : [...routers, atSwitch];
};

/** Makes the borders as the layout wants them, whatever they were. */
export const blockUdp = (layout: LabLayout): void => {
  if (!hasRelay(layout)) return;
  for (const { namespace, family, table } of bordersOf(layout)) {
    const wanted = layout.options.blockUdp === 'all' ? table : '';
    // In one transaction; the first line makes the second one right also where there is no such table.
    const input = `table ${family} ${TABLE}\ndelete table ${family} ${TABLE}\n${wanted}`;
    run([...inNamespace(namespace), 'nft', '-f', '-'], { input });
  }
};

/** Peers of a node that may have a relay, by the path that is sent by; none while its agent does not answer. */
export const peersByPath = (node: string): { readonly direct: number; readonly relay: number } => {
  const metrics = tryOnNode(node, 'curl', '-s', '--max-time', '2', 'http://127.0.0.1:9998/metrics') ?? '';
  const count = (path: string): number =>
    Number(new RegExp(`^unbounded_path_peers\\{path="${path}"\\} (\\d+)`, 'm').exec(metrics)?.[1] ?? 0);
  return { direct: count('direct'), relay: count('relay') };
};

/** Whether each node whose plan needs a relay is connected to it. */
export const relayChecks = (layout: LabLayout): Check[] =>
  readPlans(layout).flatMap(({ node, relay }): Check[] => {
    if (!relay) return [];
    const file = `/proc/${initPid(node)}/root${RELAY_STATE}`;
    const relays = existsSync(file) ? relayState.read(file).relays : [];
    const ok = relays.some(({ connected }) => connected);
    return [{ from: node, to: 'relay', what: 'connected', ok, ...(ok ? {} : { error: JSON.stringify(relays) }) }];
  });
