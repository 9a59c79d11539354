import { GROUP_VERSION } from '@unbounded/crds';
import { startAgent } from '../../substrate/agents.ts';
import { stopAgent } from '../../apps/agents.ts';
import { PARTNER } from '../../features/partner/layout.ts';
import { applyManifests, kubectl } from '../../kubernetes/control-plane.ts';
import type { LabLayout, LabNode } from '../../layout/layout.ts';
import { blockUdp, type Outage, powerOff } from '../outages.ts';

/** What an operator is to be told of by an alert, and its end. */

export interface Fault {
  begin(): Promise<void>;
  end(): Promise<void>;
}

const later = (outage: Outage): Fault => ({ begin: async () => outage.begin(), end: async () => outage.end() });

export const deadGateway = (layout: LabLayout, node: LabNode): Fault => later(powerOff(layout, node));

/** No other site reaches it by UDP. */
export const blockedSite = (site: string): Fault => later(blockUdp(site));

export const silentAgent = (layout: LabLayout, node: LabNode): Fault => ({
  begin: () => stopAgent(node.name, 'node-dataplane'),
  end: () => startAgent(layout, node, 'node-dataplane'),
});

const SMALL = 'small';
/** Nobody runs them. */
const NODES = ['small-1', 'small-2', 'small-3'] as const;

/** A Site with two blocks for pods, and three nodes. */
export const exhaustedPods = (layout: LabLayout): Fault => ({
  async begin() {
    const site = {
      ...{ apiVersion: GROUP_VERSION, kind: 'Site', metadata: { name: SMALL } },
      spec: {
        nodeCidrs: ['10.99.0.0/24'],
        podCidrAssignments: [{ cidrBlocks: ['100.127.0.0/23'], nodeBlockSizes: { ipv4: 24 } }],
      },
    };
    await applyManifests(layout, JSON.stringify(site));
    for (const [index, name] of NODES.entries()) {
      await applyManifests(layout, JSON.stringify({ apiVersion: 'v1', kind: 'Node', metadata: { name } }));
      const addresses = [{ type: 'InternalIP', address: `10.99.0.${index + 1}` }];
      const patch = JSON.stringify({ status: { addresses } });
      await kubectl(layout, ['patch', 'node', name, '--subresource=status', '--type=merge', '-p', patch]);
    }
  },
  async end() {
    await kubectl(layout, ['delete', 'node', ...NODES]);
    await kubectl(layout, ['delete', 'site', SMALL]);
  },
});

/** The pool of egress addresses selects no node. */
export const unownedAddress = (layout: LabLayout): Fault => {
  const select = async (label: object): Promise<void> => {
    const patch = [{ op: 'replace', path: '/spec/nodeSelector/matchLabels', value: label }];
    await kubectl(layout, ['patch', 'egressippool', PARTNER, '--type=json', '-p', JSON.stringify(patch)]);
  };
  let labels: object = {};
  return {
    async begin() {
      const text = await kubectl(layout, ['get', 'egressippool', PARTNER, '-o', 'json']);
      labels = (JSON.parse(text) as { spec: { nodeSelector: { matchLabels: object } } }).spec.nodeSelector.matchLabels;
      await select({ nobody: 'here' });
    },
    end: () => select(labels),
  };
};
