import type { Problem, ReachView } from './cluster-view.ts';
import { SEVERITIES } from './cluster-view.ts';
import { findOwners, type Owners } from './egress-owners.ts';
import { counted, type Found, listed } from './found.ts';
import { freshReport, isOverdue, type ViewInputs } from './inputs.ts';
import { isMute, isNotForwarding, isReturning, type Observed, OF_PEERS } from './nodes.ts';
import { summarize } from './node-summary.ts';
import type { ComposedReach } from './reach.ts';

/** What is wrong, with what that means for traffic. A cause that explains others stands for them. */

export interface Findings extends ComposedReach {
  readonly inputs: ViewInputs;
  readonly observed: ReadonlyMap<string, Observed>;
  readonly owners: Owners;
}

type Pair = { readonly from: string; readonly to: string; readonly reach: ReachView };

const pairsOf = (reach: Findings['reach']): Pair[] =>
  Object.entries(reach).flatMap(([from, ofSite]) =>
    Object.entries(ofSite).map(([to, one]) => ({ from, to, reach: one })),
  );

/** Of a site that nobody outside of it reaches, and of pairs of others. */
const findUnreachable = ({ reach }: Findings): Found[] => {
  const known = pairsOf(reach).filter(({ from, to, reach: { state } }) => from !== to && state !== 'Unknown');
  const lost = known.filter(({ reach: { state } }) => state === 'Unreachable');
  const reached = new Set(known.flatMap(({ to, reach: { state } }) => (state === 'Unreachable' ? [] : [to])));
  const lostBySite = Map.groupBy(lost, ({ to }) => to);
  const cutOff = new Set(lostBySite.keys()).difference(reached);
  const sites = [...cutOff].map((to): Found => {
    const from = lostBySite
      .get(to)!
      .map((pair) => pair.from)
      .sort();
    return {
      ...{ severity: 'critical', reason: 'SiteUnreachable', kind: 'Site', name: to },
      message: `no node of ${listed(from)} reaches site ${to}`,
      consequence: `pods of site ${to} and of ${listed(from)} cannot reach one another`,
      sites: [to, ...from],
    };
  });
  const pairs = lost
    .filter(({ from, to }) => !cutOff.has(to) && !cutOff.has(from))
    .map(({ from, to }): Found => {
      return {
        ...{ severity: 'critical', reason: `NoRouteTo-${to}`, kind: 'Site', name: from },
        message: `no node of site ${from} reaches site ${to}, which others do reach`,
        consequence: `pods of site ${from} cannot reach those of site ${to}`,
        sites: [from, to],
      };
    });
  return [...sites, ...pairs];
};

const findPartial = ({ reach }: Findings): Found[] =>
  pairsOf(reach)
    .filter(({ from, to, reach: { state } }) => from !== to && state === 'Partial')
    .map(({ from, to, reach: { nodes, reaching } }): Found => {
      return {
        ...{ severity: 'warning', reason: `PartialRouteTo-${to}`, kind: 'Site', name: from },
        message: `${nodes - reaching} of ${counted(nodes, 'node')} of site ${from} do not reach site ${to}`,
        consequence: `pods of these nodes cannot reach those of site ${to}`,
        sites: [from, to],
      };
    });

/** As those see it that probe it: one node alone may say of any gateway that packets go there. */
const mayStandIn = (seen: Observed | undefined): boolean =>
  seen !== undefined && !isMute(seen) && !isNotForwarding(seen);

/** Gateways that stand in, for the sites that a gateway served. */
const replacement = (
  { inputs, observed, carriers }: Findings,
  pool: string,
  gateway: string,
): Pick<Found, 'consequence' | 'severity'> => {
  const { connectedSites, gateways } = inputs.pools.find(({ name }) => name === pool)!;
  const others = new Set(gateways.filter((name) => name !== gateway && mayStandIn(observed.get(name))));
  const used = new Set(connectedSites.flatMap((site) => [...(carriers.get(site) ?? [])])).intersection(others);
  return used.size > 0
    ? { severity: 'warning', consequence: `traffic goes by ${listed([...used].sort())} instead` }
    : {
        severity: 'critical',
        consequence: `no other gateway of pool ${pool} carries traffic: sites behind it are cut off from one another`,
      };
};

const findGateways = (findings: Findings): Found[] =>
  findings.inputs.pools.flatMap(({ name: pool, gateways, connectedSites }) =>
    gateways.flatMap((gateway): Found[] => {
      const seen = findings.observed.get(gateway);
      if (!seen || seen.probing === 0) return [];
      const about: Pick<Found, 'kind' | 'name' | 'sites'> = { kind: 'Node', name: gateway, sites: [...connectedSites] };
      // Before anything else: while its kernel returns echoes nothing is cut off.
      if (isReturning(seen))
        return [
          {
            ...about,
            severity: 'warning',
            reason: 'GatewayNotAnswering',
            message: `gateway ${gateway} of pool ${pool} answers no probes of ${counted(seen.mute + seen.returning, 'node')}, but returns echoes`,
            consequence: 'its agent is away; its kernel forwards, and other gateways are preferred',
          },
        ];
      if (isMute(seen))
        return [
          {
            ...about,
            reason: 'GatewayDown',
            message: `gateway ${gateway} of pool ${pool} answers ${counted(seen.probing - seen.mute, 'node')} of ${seen.probing} that probe it`,
            ...replacement(findings, pool, gateway),
          },
        ];
      if (!isNotForwarding(seen)) return [];
      return [
        {
          ...about,
          reason: 'GatewayDoesNotForward',
          message: `gateway ${gateway} of pool ${pool} answers probes, but returns no echoes of ${counted(seen.notForwarding, 'node')}: a firewall or a setting there drops forwarded packets`,
          ...replacement(findings, pool, gateway),
        },
      ];
    }),
  );

/** A node, or where none of a site does, the site. */
const findSilent = ({ inputs, observed }: Findings): Found[] => {
  const gateways = new Set(inputs.pools.flatMap((pool) => pool.gateways));
  // That a gateway is down, or its agent away, says as much.
  const isTold = (name: string): boolean => {
    const seen = observed.get(name)!;
    return gateways.has(name) && (isMute(seen) || isReturning(seen));
  };
  const silent = inputs.nodes.filter((node) => isOverdue(inputs, node) && !isTold(node.name));
  const bySite = Map.groupBy(inputs.nodes, ({ site }) => site);
  const wholeSites = inputs.sites.flatMap(({ name: site }) => {
    const own = bySite.get(site) ?? [];
    return own.length > 1 && own.every((node) => isOverdue(inputs, node)) && !own.every(({ name }) => isTold(name))
      ? [{ site, own }]
      : [];
  });
  const ofSites = wholeSites.map(({ site, own }): Found => {
    return {
      ...{ severity: 'warning', reason: 'SiteNotReporting', kind: 'Site', name: site, sites: [site] },
      message: `none of the ${counted(own.length, 'node')} of site ${site} reports`,
      consequence: 'their state is not known but by their Node objects; forwarding goes on as last planned',
    };
  });
  const covered = new Set(wholeSites.map(({ site }) => site));
  const ofNodes = silent
    .filter(({ site }) => site === undefined || !covered.has(site))
    .map(({ name, site, ready }): Found => {
      const received = inputs.reports.get(name);
      const last = received ? `its last report was received at ${received.time}` : 'it has not reported yet';
      return {
        ...{ severity: 'warning', reason: 'NodeNotReporting', kind: 'Node', name },
        message: `node ${name} does not report: ${last}; its condition Ready is ${ready}`,
        consequence: 'its state is not known; forwarding goes on as last planned',
        sites: site === undefined ? [] : [site],
      };
    });
  return [...ofSites, ...ofNodes];
};

const MOST_OF_NODE = 20;
/** Characters: each change goes to every client. */
const LONGEST_OWN = 512;

/** What nodes say of themselves, and where they do not report, what their conditions say. */
const findOfNodes = ({ inputs }: Findings): Found[] =>
  inputs.nodes.flatMap((node) => {
    const report = freshReport(inputs, node.name);
    const problems = report ? report.problems.filter(({ reason }) => reason !== OF_PEERS) : node.faults;
    const byReason = Map.groupBy(problems, ({ reason }) => reason);
    return [...byReason].slice(0, MOST_OF_NODE).map(([reason, same]): Found => {
      const more = same.length > 1 ? `; and ${same.length - 1} more` : '';
      return {
        ...{ severity: 'warning', reason, kind: 'Node', name: node.name, isOwn: true },
        message: `${same[0]!.message.slice(0, LONGEST_OWN)}${more}`,
        consequence: report
          ? 'the node goes on with what its kernel holds'
          : 'read from its Node object, since it does not report',
        sites: node.site === undefined ? [] : [node.site],
      };
    });
  });

/** Peers that get no answer from each other, where neither is down as a whole. */
const findPeers = ({ inputs, observed }: Findings): Found[] =>
  inputs.nodes.flatMap(({ name, site }): Found[] => {
    const report = freshReport(inputs, name);
    if (!report) return [];
    const mute = [...summarize(report).peers].flatMap(([peer, { verdict }]) => {
      const seen = observed.get(peer);
      return verdict === 'mute' && seen && !isMute(seen) ? [peer] : [];
    });
    if (mute.length === 0) return [];
    return [
      {
        ...{ severity: 'warning', reason: 'PeersUnreachable', kind: 'Node', name },
        message: `node ${name} gets no answer from ${listed(mute.sort())}, which ${mute.length === 1 ? 'answers' : 'answer'} others`,
        consequence: `pods of ${name} and of ${mute.length === 1 ? 'that node' : 'those nodes'} cannot reach one another directly`,
        sites: site === undefined ? [] : [site],
      },
    ];
  });

const findRelayed = ({ inputs }: Findings): Found[] =>
  inputs.nodes.flatMap(({ name, site }): Found[] => {
    const report = freshReport(inputs, name);
    const relayed = report
      ? [...summarize(report).peers].filter(([, { relayedReason }]) => relayedReason !== undefined)
      : [];
    if (relayed.length === 0) return [];
    const reasons = [...new Set(relayed.map(([, { relayedReason }]) => relayedReason!))].sort();
    const peers = relayed.map(([peer]) => peer).sort();
    return [
      {
        ...{ severity: 'info', reason: 'Relayed', kind: 'Node', name },
        message: `the WireGuard sessions of ${name} with ${listed(peers)} go over the TCP relay: ${listed(reasons)}`,
        consequence: 'traffic is carried, with a longer round trip; it becomes direct when UDP gets through',
        sites: site === undefined ? [] : [site],
      },
    ];
  });

export const findProblems = (findings: Findings): Found[] => [
  ...findUnreachable(findings),
  ...findGateways(findings),
  ...findOwners(findings.owners),
  ...findPartial(findings),
  ...findSilent(findings),
  ...findPeers(findings),
  ...findOfNodes(findings),
  ...findRelayed(findings),
];

export const problemId = ({ kind, name, reason, isOwn }: Pick<Found, 'kind' | 'name' | 'reason' | 'isOwn'>): string =>
  `${kind}/${name}/${isOwn ? 'self/' : ''}${reason}`;

/** The most severe first, of these what affects most sites, of these the oldest. */
export const inOrder = (problems: readonly (readonly [string, Problem])[]): string[] =>
  problems
    .toSorted(
      ([idA, a], [idB, b]) =>
        SEVERITIES.indexOf(a.severity) - SEVERITIES.indexOf(b.severity) ||
        b.sites.length - a.sites.length ||
        a.since.localeCompare(b.since) ||
        idA.localeCompare(idB),
    )
    .map(([id]) => id);
