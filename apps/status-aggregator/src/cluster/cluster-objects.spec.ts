import type { GatewayPool, Site } from '@unbounded/crds';
import type { Node } from '@unbounded/kube';
import { describe, expect, it } from 'vitest';
import { clusterInputs, keptNode } from './cluster-objects.ts';

const SITE = 'net.unbounded-cloud.io/site';

const node = (
  name: string,
  conditions: readonly { readonly type: string; readonly status: string; readonly reason?: string }[] = [],
  labels: Readonly<Record<string, string>> = { [SITE]: 's1', other: 'x' },
): Node => ({
  metadata: { name, uid: `u-${name}`, resourceVersion: '7', labels },
  spec: { podCIDR: '10.0.0.0/24' },
  status: { conditions: conditions.map((one) => ({ message: `message of ${one.type}`, ...one })), images: [{}] },
});

const inputsOf = (...nodes: Node[]) =>
  clusterInputs({ nodes: nodes.map(keptNode), sites: [], pools: [] }, () => 7).nodes;

describe('a Node', () => {
  it('is kept with what is read of it, and with the version by which an informer tells updates apart', () => {
    expect(
      keptNode(
        node('n1', [
          { type: 'Ready', status: 'True' },
          { type: 'DiskPressure', status: 'False' },
        ]),
      ),
    ).toEqual({
      metadata: { name: 'n1', uid: 'u-n1', resourceVersion: '7', labels: { [SITE]: 's1' } },
      status: { conditions: [{ type: 'Ready', status: 'True', message: 'message of Ready' }] },
    });
  });

  it('is in the site of its label, or in none', () => {
    expect(inputsOf(node('n1'), node('n2', [], {}))).toEqual([
      { name: 'n1', site: 's1', ready: 'Unknown', faults: [], knownMs: 7 },
      { name: 'n2', ready: 'Unknown', faults: [], knownMs: 7 },
    ]);
  });

  it.each([
    ['UnboundedNetworkDegraded', 'True', true],
    ['UnboundedNetworkDegraded', 'False', false],
    ['UnboundedForwarding', 'False', true],
    ['UnboundedForwarding', 'True', false],
    ['UnboundedEgress', 'False', true],
    ['UnboundedEgress', 'True', false],
    ['UnboundedRelayed', 'True', false],
    ['UnboundedNodeAccepted', 'False', false],
    ['NetworkUnavailable', 'True', false],
  ])('with condition %s=%s has a fault: %s', (type, status, isFault) => {
    const faults = isFault ? [{ reason: 'R', message: `message of ${type}` }] : [];
    expect(inputsOf(node('n1', [{ type, status, reason: 'R' }]))[0]?.faults).toEqual(faults);
  });
});

it('sites, pools and gateways come in the order of their names', () => {
  const named = (name: string) => ({ metadata: { name } });
  const pool = { ...named('p'), status: { nodes: [{ name: 'g2' }, { name: 'g1' }], connectedSites: ['s2', 's1'] } };
  const objects = {
    nodes: [],
    sites: [named('s2'), named('s1')] as Site[],
    pools: [named('q'), pool] as unknown as GatewayPool[],
  };
  const { sites, pools } = clusterInputs(objects, () => 0);
  expect(sites).toEqual([{ name: 's1' }, { name: 's2' }]);
  expect(pools).toEqual([
    { name: 'p', gateways: ['g1', 'g2'], connectedSites: ['s1', 's2'] },
    { name: 'q', gateways: [], connectedSites: [] },
  ]);
});
