import { existsSync } from 'node:fs';
import { RELAY_STATE } from '@unbounded/config/ownership';
import { GROUP_VERSION } from '@unbounded/crds';
import { relayState } from '@unbounded/keeper-protocol';
import { metricsOn } from '../../apps/agent-state.ts';
import type { Check } from '../../checks/checks.ts';
import { inNamespace, run } from '../../machine/command.ts';
import { pidOf, startDaemon } from '../../machine/daemon.ts';
import { NAME_SERVER_PORT, nameServers } from '../../underlay/names.ts';
import { switchPort } from '../../underlay/underlay.ts';
import { nftFamilyOf } from '../../layout/addresses.ts';
import { type LabLayout, namespaceOf, routerName, WAN } from '../../layout/layout.ts';
import { readPlans } from '../../checks/links.ts';
import { initPid } from '../../node/node.ts';
import { appBundle, nodeJs } from '../../machine/paths.ts';
import { hasRelay, RELAY_HEALTH_PORT, RELAY_PORT, relayEndpoint } from '../../apps/relay-place.ts';
import { type Feature, NOTHING } from '../feature.ts';
import { BLOCK_UDP, type BlockUdp } from './options.ts';
import { UsageError } from '../../layout/usage-error.ts';

/** A relay in the outside world, and borders of sites that let no UDP pass. */

export const RELAY_DAEMON = 'relay';
/** nobody, nogroup */
const UNPRIVILEGED = ['setpriv', '--reuid', '65534', '--regid', '65534', '--clear-groups', '--no-new-privs'];

/** The relay of the checkout, as a process without privileges. */
export const startRelay = (layout: LabLayout): void => {
  if (!hasRelay(layout) || pidOf(RELAY_DAEMON) !== undefined) return;
  const flags = ['--addr', `:${RELAY_PORT}`, '--health-port', String(RELAY_HEALTH_PORT)];
  startDaemon(RELAY_DAEMON, [
    ...inNamespace(namespaceOf(WAN.worldName)),
    ...UNPRIVILEGED,
    ...[nodeJs, appBundle('relay'), ...flags],
  ]);
};

const TABLE = 'block_udp';

/** A site whose border drops UDP has a DNS resolver all the same: the lab's is in the outside world. */
const resolverRules = (layout: LabLayout): string =>
  nameServers(layout)
    .flatMap((address) => [
      `    ${nftFamilyOf(address)} daddr ${address} udp dport ${NAME_SERVER_PORT} accept\n`,
      `    ${nftFamilyOf(address)} saddr ${address} udp sport ${NAME_SERVER_PORT} accept\n`,
    ])
    .join('');

/** Of a site: what its router passes on between LAN and WAN. What stays in the LAN is bridged, and never comes by here. */
const routerTable = (layout: LabLayout): string => `table inet ${TABLE} {
  chain forward { type filter hook forward priority filter - 10
${resolverRules(layout)}    iifname wan0 meta l4proto udp drop
    oifname wan0 meta l4proto udp drop
  }
}
`;

/**
 * A gateway with an interface of its own on the WAN passes no router: the port of the switch is its border. A partner is no site,
 * and what is said to it in UDP passes.
 */
const switchTable = (ports: readonly string[]): string => `table bridge ${TABLE} {
  chain forward { type filter hook forward priority filter
    iifname ${WAN.partnerPort} accept
    oifname ${WAN.partnerPort} accept
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
    return { namespace: namespaceOf(routerName(name)), family: 'inet', table: routerTable(layout) };
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
  const metrics = metricsOn(node);
  const count = (path: string): number =>
    Number(new RegExp(`^unbounded_wireguard_peer_paths\\{path="${path}"\\} (\\d+)`, 'm').exec(metrics)?.[1] ?? 0);
  return { direct: count('direct'), relay: count('relay') };
};

/** Whether each node whose plan needs a relay is connected to it. */
export const relayChecks = (layout: LabLayout): Check[] =>
  readPlans(layout).flatMap(({ node, relay: planned }): Check[] => {
    if (!planned) return [];
    const file = `/proc/${initPid(node)}/root${RELAY_STATE}`;
    const relays = existsSync(file) ? relayState.read(file).relays : [];
    const ok = relays.some(({ connected }) => connected);
    return [{ from: node, to: 'relay', what: 'connected', ok, ...(ok ? {} : { error: JSON.stringify(relays) }) }];
  });

/** @throws UsageError that names the valid input */
export const blockUdpFrom = ([given = '', ...more]: readonly string[]): BlockUdp => {
  const found = BLOCK_UDP.find((known) => known === given);
  if (!found || more.length > 0)
    throw new UsageError(`tools/lab block-udp ${[given, ...more].join(' ')}: must be one of ${BLOCK_UDP.join(', ')}`);
  return found;
};

const mesh = (layout: LabLayout): object => ({
  apiVersion: GROUP_VERSION,
  kind: 'Mesh',
  metadata: { name: 'default' },
  spec: { relay: { provider: 'external', external: { endpoint: relayEndpoint(layout) } } },
});

export const relay: Feature = {
  ...NOTHING,
  manifests: (layout) => (hasRelay(layout) ? [mesh(layout)] : []),
  needsKeeper: hasRelay,
  start(layout) {
    blockUdp(layout);
    startRelay(layout);
  },
  daemons: (layout) => (hasRelay(layout) ? [RELAY_DAEMON] : []),
  checks: ({ layout }) => Promise.resolve(hasRelay(layout) ? relayChecks(layout) : []),
  commands: {
    'block-udp'(words, running) {
      const which = blockUdpFrom(words);
      const layout = running();
      if (!hasRelay(layout))
        throw new UsageError('this lab has no relay: tools/lab down, then up --block-udp all or none');
      const changed = { ...layout, options: { ...layout.options, blockUdp: which } };
      blockUdp(changed);
      return changed;
    },
  },
};
