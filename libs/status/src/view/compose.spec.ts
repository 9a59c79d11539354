import { describe, expect, it } from 'vitest';
import { peerOf, reportOf } from '../report.testdata.ts';
import { clusterView, type ClusterView } from './cluster-view.ts';
import { composeView } from './compose.ts';
import type { ViewInputs } from './inputs.ts';
import { clusterInputs, NOW, received, withoutGateway, withReport } from './view.testdata.ts';

const LATER = '2026-01-01T00:01:00.000Z';
const view = (inputs: ViewInputs, before?: ClusterView, now = NOW): ClusterView => composeView(inputs, before, now);
const reasons = ({ order, problems }: ClusterView): string[] =>
  order.map((id) => `${problems[id]!.severity} ${id.replace(/^\w+\//, '')}`);

describe('the view of a cluster in which all is well', () => {
  it('is healthy everywhere, and conforms to its schema', () => {
    const composed = view(clusterInputs());
    expect(clusterView.parse(composed)).toEqual(composed);
    expect(composed.summary).toMatchObject({ state: 'Healthy', nodes: 6, reporting: 6, gateways: 2 });
    expect(reasons(composed)).toEqual([]);
    expect(composed.reach['s1']?.['s2']).toMatchObject({
      state: 'Reachable',
      nodes: 2,
      reaching: 2,
      via: ['g1', 'g2'],
    });
    expect(composed.reach['s1']?.['s1']).toMatchObject({ state: 'Reachable', nodes: 2 });
    expect(composed.pools['p1']?.gateways['g1']).toEqual({ state: 'Healthy', activeFor: ['s1', 's2'] });
  });

  it('does not change with the tremble of round trips', () => {
    const inputs = clusterInputs();
    const before = view(inputs);
    withReport(inputs, 'w11', (status) => ({ ...status, peers: { ...status.peers, g1: peerOf({ rttMs: 1.2 }) } }));
    expect(view(inputs, before)).toEqual(before);
  });
});

describe('objects that cannot be read anew', () => {
  it('are marked with the time since when, which stays until they are read again, and changes nothing else', () => {
    const inputs = clusterInputs();
    const before = view(inputs);
    expect(view({ ...inputs, lostMs: 14_999 }, before)).toEqual(before);
    const lost = view({ ...inputs, lostMs: 15_000 }, before, LATER);
    expect(lost).toEqual({ ...before, objectsTime: '2026-01-01T00:00:45.000Z' });
    expect(clusterView.parse(lost)).toEqual(lost);
    expect(view({ ...inputs, lostMs: 90_000 }, lost, '2026-01-01T00:03:00.000Z')).toEqual(lost);
    expect(view({ ...inputs, lostMs: 0 }, lost, LATER)).toEqual(before);
  });
});

describe('the way from site to site', () => {
  /** Gateways with an RTT of 10 ms and a loss of one half to the workers of site s2. */
  const withFarSite = (over: Partial<Parameters<typeof peerOf>[1]> = {}): ReturnType<typeof clusterInputs> => {
    const inputs = clusterInputs();
    for (const gateway of ['g1', 'g2'])
      withReport(inputs, gateway, (status) => ({
        ...status,
        peers: {
          ...status.peers,
          w21: peerOf({ rttMs: 10, lossRatio: 0.5, pathMtuBytes: 1280 }, over),
          w22: peerOf({ rttMs: 10, lossRatio: 0.5 }, over),
        },
      }));
    return inputs;
  };

  it('is as long, as narrow and as lossy as its hops together', () => {
    const inputs = withFarSite();
    withReport(inputs, 'w12', (status) => ({ ...status, peers: { ...status.peers, g1: peerOf({ lossRatio: 0.5 }) } }));
    expect(view(inputs).reach['s1']?.['s2']).toMatchObject({ rttMs: 11, lossRatio: 0.75, pathMtuBytes: 1280 });
    expect(view(inputs).reach['edge']?.['s2']).toMatchObject({ rttMs: 10, lossRatio: 0.5 });
    expect(view(inputs).reach['s2']?.['s1']).toMatchObject({ rttMs: 2 });
  });

  it('goes over the relay where that of the gateway in use does, for the same reason', () => {
    const session = { rxBytes: 1, txBytes: 1, path: 'Relayed', pathReason: 'probes were not answered' } as const;
    const composed = view(withFarSite({ wireGuard: { wg0: session } }));
    const relayed = { nodes: 2, relayed: 2, relayedReason: 'probes were not answered' };
    expect(composed.reach['s1']?.['s2']).toMatchObject(relayed);
    expect(composed.reach['edge']?.['s2']).toMatchObject(relayed);
    expect(composed.reach['s2']?.['s1']?.relayed).toBe(0);
    expect(composed.problems['Node/g1/Relayed']?.message).toBe(
      'the WireGuard sessions of g1 with w21, w22 go over the TCP relay: probes were not answered',
    );
  });

  it('is what it is since its state changed, or it took to the relay', () => {
    const inputs = withFarSite();
    const before = view(inputs);
    expect(before.reach['s1']?.['s2']?.since).toBe(NOW);
    withReport(inputs, 'w11', (status) => ({ ...status, peers: { ...status.peers, g1: peerOf({ rttMs: 7 }) } }));
    expect(view(inputs, before, LATER).reach['s1']?.['s2']?.since).toBe(NOW);
    const relayed = withFarSite({ wireGuard: { wg0: { rxBytes: 1, txBytes: 1, path: 'Relayed' } } });
    const after = view(relayed, before, LATER).reach;
    expect(after['s1']?.['s2']).toMatchObject({ since: LATER, relayedReason: 'not reported' });
    expect(after['s2']?.['s1']?.since).toBe(NOW);
    withoutGateway(inputs, 'g1');
    withoutGateway(inputs, 'g2');
    expect(view(inputs, before, LATER).reach['s1']?.['s2']).toMatchObject({ state: 'Unreachable', since: LATER });
  });
});

describe('a gateway that answers nobody', () => {
  it('is one problem, which names what stands in; the nodes that probe it stay healthy', () => {
    const inputs = clusterInputs();
    withoutGateway(inputs, 'g1');
    const composed = view(inputs);
    expect(reasons(composed)).toEqual(['warning g1/GatewayDown']);
    expect(composed.problems['Node/g1/GatewayDown']).toMatchObject({
      consequence: 'traffic goes by g2 instead',
      sites: ['s1', 's2'],
    });
    expect(composed.nodes['g1']).toMatchObject({ state: 'Unreachable', source: 'none', lastReportTime: NOW });
    expect(composed.nodes['w11']?.state).toBe('Healthy');
    expect(composed.reach['s1']?.['s2']).toMatchObject({ state: 'Reachable', via: ['g2'] });
  });

  it('is critical when it was the last one, and the sites behind it are unreachable', () => {
    const inputs = clusterInputs();
    withoutGateway(inputs, 'g1');
    withoutGateway(inputs, 'g2');
    const composed = view(inputs);
    expect(composed.reach['s1']?.['s2']?.state).toBe('Unreachable');
    expect(reasons(composed)).toEqual(
      expect.arrayContaining([
        'critical s2/SiteUnreachable',
        'critical g1/GatewayDown',
        'critical g2/GatewayDown',
      ]) as string[],
    );
    expect(composed.problems['Site/s2/SiteUnreachable']?.consequence).toBe(
      'pods of site s2 and of s1 cannot reach one another',
    );
  });

  it('but returns echoes cuts nothing off: its agent is away, and it goes on forwarding', () => {
    const inputs = clusterInputs();
    withoutGateway(inputs, 'g1');
    withoutGateway(inputs, 'g2');
    for (const node of ['w11', 'w12', 'w21', 'w22'])
      withReport(inputs, node, (status) => ({
        ...status,
        peers: { ...status.peers, g2: peerOf({ state: 'Unhealthy', forwards: true }) },
        groups: Object.fromEntries(
          Object.entries(status.groups).map(([name, group]) => [
            name,
            { ...group, members: { ...group.members, g2: { tier: 0, isActive: true } } },
          ]),
        ),
      }));
    const composed = view(inputs);
    expect(reasons(composed)).toEqual(['warning g1/GatewayDown', 'warning g2/GatewayNotAnswering']);
    expect(composed.reach['s1']?.['s2']).toMatchObject({ state: 'Reachable', via: ['g2'] });
    expect(composed.nodes['g2']?.state).toBe('Unknown');
  });

  it('that denies a site is believed by what it reports of its own routes there', () => {
    const inputs = clusterInputs();
    const denying = {
      site: 's2',
      family: 'IPv4',
      members: { g1: { tier: 0, isActive: true, reachesSite: false } },
    } as const;
    for (const node of ['w11', 'w12'])
      withReport(inputs, node, (status) => ({ ...status, groups: { 'site/s2/4': denying } }));
    expect(view(inputs).reach['s1']?.['s2']?.state).toBe('Unreachable');
    const own = { site: 's2', family: 'IPv4', members: { g2: { tier: 0, isActive: true } } } as const;
    withReport(inputs, 'g1', (status) => ({ ...status, groups: { 'site/s2/4': own } }));
    expect(view(inputs).reach['s1']?.['s2']?.state).toBe('Reachable');
  });

  it('that one node alone does not hear is a problem of that node', () => {
    const inputs = clusterInputs();
    withReport(inputs, 'w11', (status) => ({
      ...status,
      peers: { ...status.peers, g1: peerOf({ state: 'Unhealthy' }) },
    }));
    const composed = view(inputs);
    expect(reasons(composed)).toEqual(['warning w11/PeersUnreachable']);
    expect(composed.nodes['g1']?.state).toBe('Healthy');
  });

  it('or does not forward, although it answers, is named as such', () => {
    const inputs = clusterInputs();
    for (const node of ['w11', 'w12', 'w21', 'w22'])
      withReport(inputs, node, (status) => ({
        ...status,
        peers: { ...status.peers, g1: peerOf({ forwards: false }) },
      }));
    expect(reasons(view(inputs))).toEqual(['warning g1/GatewayDoesNotForward']);
  });
});

describe('a node that does not report', () => {
  it('is unknown while its peers have answers of it, and never healthy', () => {
    const inputs = clusterInputs();
    inputs.reports.set('w11', { ...inputs.reports.get('w11')!, ageMs: 25_000 });
    const composed = view(inputs);
    expect(composed.nodes['w11']).toMatchObject({ source: 'none' });
    expect(composed.nodes['w11']?.state).not.toBe('Healthy');
    expect(composed.nodes['w11']?.peers).toBeUndefined();
    expect(reasons(composed)).toEqual(['warning w11/NodeNotReporting']);
  });

  it('is not missed before it had the time to report', () => {
    const inputs = clusterInputs();
    inputs.reports.delete('w11');
    const nodes = inputs.nodes.map((node) => (node.name === 'w11' ? { ...node, knownMs: 24_999 } : node));
    const composed = view({ ...inputs, nodes });
    expect(reasons(composed)).toEqual([]);
    expect(composed.nodes['w11']).toMatchObject({ source: 'none' });
  });

  it('is shown with what its Node object says', () => {
    const inputs = clusterInputs();
    inputs.reports.delete('w11');
    const nodes = inputs.nodes.map((node) =>
      node.name === 'w11' ? { ...node, faults: [{ reason: 'RouteFailed', message: 'no route' }] } : node,
    );
    const composed = view({ ...inputs, nodes });
    expect(composed.nodes['w11']?.source).toBe('api');
    expect(composed.problems['Node/w11/self/RouteFailed']).toMatchObject({
      message: 'no route',
      consequence: 'read from its Node object, since it does not report',
    });
  });

  it('is told as its site, when no node of that does', () => {
    const inputs = clusterInputs();
    for (const node of ['w21', 'w22']) inputs.reports.delete(node);
    const composed = view(inputs);
    expect(reasons(composed)).toEqual(['warning s2/SiteNotReporting']);
    expect(composed.reach['s2']).toEqual({});
    expect(composed.sites['s2']).toMatchObject({ nodes: 2, reporting: 0 });
  });
});

describe('a problem', () => {
  it('keeps its beginning, and is kept with its end', () => {
    const inputs = clusterInputs();
    withoutGateway(inputs, 'g1');
    const first = view(inputs);
    expect(view(inputs, first, LATER).problems['Node/g1/GatewayDown']?.since).toBe(NOW);
    const after = view(clusterInputs(), first, LATER);
    expect(after.problems).toEqual({});
    expect(after.ended).toMatchObject([{ reason: 'GatewayDown', since: NOW, until: LATER }]);
  });

  it('of a node with its peers is told by the peers themselves', () => {
    const inputs = clusterInputs();
    const problems = [{ reason: 'PeersUnhealthy', message: '1 of 3 probed paths do not answer: g1 (IPv4)' }];
    inputs.reports.set('w11', received({ ...inputs.reports.get('w11')!.report, problems }));
    const composed = view(inputs);
    expect(reasons(composed)).toEqual([]);
    expect(composed.nodes['w11']?.state).toBe('Healthy');
  });

  it('of a node is one by reason, however many there are', () => {
    const inputs = clusterInputs();
    const problems = Array.from({ length: 200 }, (_, at) => ({ reason: 'RouteFailed', message: `route ${at}` }));
    inputs.reports.set('w11', received({ ...inputs.reports.get('w11')!.report, problems }));
    const composed = view(inputs);
    expect(reasons(composed)).toEqual(['warning w11/self/RouteFailed']);
    expect(composed.problems['Node/w11/self/RouteFailed']?.message).toBe('route 0; and 199 more');
  });
});

describe('what a node says of itself', () => {
  it('does not take the place of what others observe of it', () => {
    const inputs = clusterInputs();
    for (const node of ['w11', 'w12', 'w21', 'w22'])
      withReport(inputs, node, (status) => ({
        ...status,
        peers: { ...status.peers, g1: peerOf({ forwards: false }) },
      }));
    const problems = [{ reason: 'GatewayDoesNotForward', message: 'planned: all is well' }];
    inputs.reports.set('g1', received({ ...inputs.reports.get('g1')!.report, problems }));
    expect(reasons(view(inputs))).toEqual([
      'warning g1/GatewayDoesNotForward',
      'warning g1/self/GatewayDoesNotForward',
    ]);
  });

  it('breaks no view, whatever its members are called', () => {
    const inputs = clusterInputs();
    const members = { constructor: { tier: 0, isActive: true }, toString: { tier: 0, isActive: true } };
    withReport(inputs, 'w11', (status) => ({
      ...status,
      groups: { g: { site: 's2', family: 'IPv4', members } },
    }));
    expect(view(inputs).reach['s1']?.['s2']).toMatchObject({ nodes: 2, reaching: 1, via: ['g1', 'g2'] });
  });

  it('fills no list of what ended lately', () => {
    const inputs = clusterInputs();
    let before: ClusterView | undefined;
    for (let round = 0; round < 30; round++) {
      const problems = Array.from({ length: 20 }, (_, at) => ({ reason: `R${round}x${at}`, message: 'm' }));
      inputs.reports.set('w11', received({ ...inputs.reports.get('w11')!.report, problems }));
      before = view(inputs, before);
    }
    expect(before?.ended).toHaveLength(5);
  });

  it('does not put sites or nodes into the view that are none', () => {
    const inputs = clusterInputs();
    withReport(inputs, 'w11', (status) => ({
      ...status,
      site: 'elsewhere',
      peers: { ...status.peers, nobody: peerOf() },
      groups: {
        ...status.groups,
        'site/nowhere/4': { site: 'nowhere', family: 'IPv4', members: {} },
        'site/s2/6': { site: 's2', family: 'IPv6', members: { nobody: { tier: 0, isActive: true } } },
      },
    }));
    const composed = view(inputs);
    expect(Object.keys(composed.sites)).toEqual(['s1', 's2', 'edge']);
    expect(composed.reach['s1']?.['nowhere']).toBeUndefined();
    expect(composed.reach['s1']?.['s2']?.via).toEqual(['g1', 'g2']);
    expect(composed.nodes['nobody']).toBeUndefined();
    expect(composed.nodes['w11']?.site).toBe('s1');
  });

  it('takes no peer down alone', () => {
    const inputs = clusterInputs();
    withReport(inputs, 'w11', (status) => ({
      ...status,
      peers: Object.fromEntries(Object.keys(status.peers).map((name) => [name, peerOf({ state: 'Unhealthy' })])),
    }));
    const composed = view(inputs);
    expect(composed.nodes['g1']?.state).toBe('Healthy');
    expect(composed.reach['s2']?.['s1']?.state).toBe('Reachable');
  });

  it('of an egress address that another answers for as well is a conflict', () => {
    const inputs = clusterInputs();
    for (const node of ['w11', 'w21'])
      inputs.reports.set(
        node,
        received(
          reportOf({
            ...inputs.reports.get(node)!.report,
            egress: { isInForce: true, heldAddresses: ['203.0.113.7'], steeredPods: 0 },
          }),
        ),
      );
    const composed = view(inputs);
    expect(composed.egress['203.0.113.7']).toEqual({ owners: ['w11', 'w21'] });
    expect(reasons(composed)).toEqual(['critical 203.0.113.7/EgressAddressConflict']);
  });
});
