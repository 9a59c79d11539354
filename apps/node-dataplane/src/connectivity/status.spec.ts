import { nodeReport } from '@unbounded/status';
import type { NodePlan } from '@unbounded/topology';
import { describe, expect, it } from 'vitest';
import type { PeerReport } from './health/messages.ts';
import type { TimedPath } from './paths/path-times.ts';
import { connectivityStatus, type Observed } from './status.ts';

const KEY = 'a'.repeat(43) + '=';
const OTHER = 'b'.repeat(43) + '=';

const plan = {
  ...{ node: 'w1', site: 's1', role: 'worker' },
  wireGuard: [
    {
      ...{ name: 'wg51820', listenPort: 51820, mtuBytes: 1420 },
      peers: [
        { node: 'g1', publicKey: KEY, allowedIps: [] },
        { node: 'g2', publicKey: OTHER, allowedIps: [] },
      ],
    },
  ],
  tunnels: [{ node: 'w2', protocol: 'GENEVE' }],
  probes: [{ node: 'w2' }, { node: 'w3' }, { node: 'g1' }],
} as unknown as NodePlan;

const peer = (node: string, family: 4 | 6, over: Partial<PeerReport> = {}): PeerReport => ({
  ...{ node, family, state: 'Healthy', graceOver: false, knowsNextKey: false },
  ...over,
});

const observed = (over: Partial<Observed> = {}): Observed => ({
  ...{ dataplane: 'ebpf', peers: [], groups: [], paths: [], wireGuard: new Map() },
  ...over,
});

describe('the status of connectivity', () => {
  it('has each peer with the protocol that packets go to it by', () => {
    const { peers, ...status } = connectivityStatus(plan, observed());
    expect(status).toEqual({ site: 's1', role: 'worker', dataplane: 'ebpf', groups: {} });
    expect(Object.entries(peers).map(([node, { protocol }]) => `${node} ${protocol}`)).toEqual([
      'w2 GENEVE',
      'w3 None',
      'g1 WireGuard',
      'g2 WireGuard',
    ]);
  });

  it('has the health of each family that is probed, and nothing of what is not known', () => {
    const peers = [
      peer('g1', 4, { rttMs: 1.23456, lossRatio: 1 / 32, forwards: false }),
      peer('g1', 6, { state: 'Unhealthy', pathMtuBytes: 1280 }),
      peer('gone', 4),
    ];
    const status = connectivityStatus(plan, observed({ peers }));
    expect(status.peers['g1']?.health).toEqual({
      ipv4: { state: 'Healthy', rttMs: 1.2, lossRatio: 0.031, forwards: false },
      ipv6: { state: 'Unhealthy', pathMtuBytes: 1280 },
    });
    expect(status.peers['g2']?.health).toEqual({});
    expect(status.peers['gone']).toBeUndefined();
  });

  it('has the session of each WireGuard peer, with the way it takes and why', () => {
    const session = { ...{ publicKey: KEY, allowedIps: [], persistentKeepaliveSeconds: 0 }, hasPresharedKey: false };
    const wireGuard: Observed['wireGuard'] = new Map([
      [
        'wg51820',
        {
          ...{ listenPort: 51820, fwmark: 0 },
          peers: [
            {
              ...session,
              ...{ endpoint: '192.0.2.1:51820', latestHandshakeMs: Date.UTC(2026, 0, 1), rxBytes: 7, txBytes: 9 },
            },
          ],
        },
      ],
    ]);
    const path: TimedPath = {
      ...{ device: 'wg51820', publicKey: KEY, node: 'g1', path: 'relay' },
      ...{ reason: 'unanswered', endpoint: '127.0.0.1:1', takenAtMs: 1 },
      sinceTime: '2026-01-02T00:00:00.000Z',
    };
    const status = connectivityStatus(plan, observed({ wireGuard, paths: [path] }));
    expect(status.peers['g1']?.wireGuard).toEqual({
      wg51820: {
        ...{ endpoint: '192.0.2.1:51820', latestHandshakeTime: '2026-01-01T00:00:00.000Z', rxBytes: 7, txBytes: 9 },
        ...{ path: 'Relayed', pathReason: 'probes were not answered' },
        pathSinceTime: '2026-01-02T00:00:00.000Z',
      },
    });
    expect(status.peers['g2']?.wireGuard).toEqual({});
  });

  it('has the groups as they are in the kernel', () => {
    const members = [
      { node: 'g1', tier: 0, isActive: true },
      { node: 'g2', tier: 0, isActive: false, reachesSite: false },
    ];
    const status = connectivityStatus(plan, observed({ groups: [{ name: 's2/4', family: 4, site: 's2', members }] }));
    expect(status.groups).toEqual({
      's2/4': {
        ...{ site: 's2', family: 'IPv4' },
        members: { g1: { tier: 0, isActive: true }, g2: { tier: 0, isActive: false, reachesSite: false } },
      },
    });
  });

  it('is what the aggregator takes', () => {
    const connectivity = connectivityStatus(plan, observed({ peers: [peer('g1', 4, { rttMs: 0.1 })] }));
    const report = { agentVersion: '1', isComplete: true, problems: [], drops: {}, connectivity };
    expect(nodeReport.parse(JSON.parse(JSON.stringify(report)))).toEqual(report);
  });
});
