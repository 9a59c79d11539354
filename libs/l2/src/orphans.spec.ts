import type { NetworkEndpoint } from '@unbounded/crds';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { clusterOf, createdEndpoint, nodeObject, podObject, timeOf } from './cluster.testdata.ts';
import { type L2ClusterSnapshot, planRemovals, type Removal } from './index.ts';
import { endpointKey } from './snapshot.ts';
import { fdbEntry } from './testdata.ts';

const [e1, e2] = [createdEndpoint(1, 'n1'), createdEndpoint(2, 'n2')];
const E1 = ['lan.02-00-00-00-00-01', 'lan.ip.192.0.2.1', 'lan.ip.2001xdb8xx1'];
const textOf = (removal: Removal): string => {
  const endpoint = 'endpoint' in removal ? ` ${removal.endpoint?.metadata.name ?? '-'}` : '';
  return `${removal.reason}${endpoint}: ${removal.entries.map(({ metadata }) => metadata.name).join(' ')}`;
};
const removals = (rest: Partial<L2ClusterSnapshot>, endpoints: readonly NetworkEndpoint[] = [e1, e2]) =>
  planRemovals(clusterOf([], endpoints, rest)).map(textOf);
const lastingly = (uid: string): NetworkEndpoint => ({ ...e1, spec: { ...e1.spec, nodeUID: uid } });

describe('what is removed', () => {
  it('is nothing while Nodes, Pods and endpoints are there', () => {
    expect(removals({})).toEqual([]);
  });

  it('is what a Node had that is gone: entries and endpoint together, and nothing of others', () => {
    expect(removals({ nodes: [nodeObject('n2')] })).toEqual([`NodeGone e1: ${E1.join(' ')}`]);
  });

  it('is nothing while a list is not complete', () => {
    expect(removals({ isComplete: false, nodes: [], pods: [], endpoints: [] })).toEqual([]);
  });

  it('is what the predecessor of a Node had, by UID or by the times of creation', () => {
    const anew = nodeObject('n1', '1420', { uid: 'anew', created: 2 });
    const gone = [`NodeGone e1: ${E1.join(' ')}`];
    expect(removals({ nodes: [anew, nodeObject('n2')] })).toEqual(gone);
    expect(removals({}, [lastingly('uid-n1')])).toEqual([]);
    expect(removals({}, [lastingly('former')])).toEqual(gone);
    expect(removals({ nodes: [anew] }, [lastingly('anew')])).toEqual([]);
  });

  it('is the endpoint of a Pod that is gone, or another of its name, and not what its agent takes down itself', () => {
    expect(removals({ pods: [podObject(2)] })).toEqual(['PodGone e1: ']);
    expect(removals({ pods: [podObject(1, 'anew'), podObject(2)] })).toEqual(['PodGone e1: ']);
    const underWay = { ...e1, metadata: { ...e1.metadata, deletionTimestamp: timeOf(5) } };
    expect(removals({ pods: [] }, [underWay])).toEqual([]);
  });

  it('is an endpoint whose Pod is on another node than it says, and nothing while the Pod has no node', () => {
    const placed = (nodeName: string) => removals({ pods: [podObject(1, 'uid-p1', nodeName), podObject(2)] });
    expect(placed('n1')).toEqual([]);
    expect(placed('')).toEqual([]);
    expect(placed('n2')).toEqual(['PodElsewhere e1: ']);
    const { ownerReferences: _, ...ownerless } = e1.metadata;
    const forged = { ...e1, metadata: { ...ownerless, deletionTimestamp: timeOf(5) } };
    expect(removals({ pods: [podObject(1, 'x', 'n2'), podObject(2)] }, [forged, e2])).toEqual(['PodElsewhere e1: ']);
  });

  it('are entries whose endpoint is gone', () => {
    expect(removals({ endpoints: [e2] })).toEqual([`EndpointGone: ${E1.join(' ')}`]);
  });

  it('are entries of a node that is gone for an endpoint of another one', () => {
    const strays = [fdbEntry(e2, {}, { managingNode: 'n9' }), fdbEntry(e1, {}, { managingNode: 'n2' })];
    expect(removals({ fdbEntries: strays })).toEqual(['NodeGone: lan.02-00-00-00-00-02']);
  });

  it('is no entry without a status: its node is about to write it', () => {
    const { status: _, ...bare } = fdbEntry(e1);
    expect(removals({ fdbEntries: [bare], neighbors: [], endpoints: [] })).toEqual([]);
  });
});

const endpoints = fc.uniqueArray(
  fc.record({
    number: fc.integer({ min: 1, max: 12 }),
    node: fc.constantFrom('n1', 'n2', 'n3', 'n4'),
    created: fc.nat(4),
    nodeUID: fc.option(fc.constantFrom('old', 'new'), { nil: undefined }),
  }),
  { selector: ({ number }) => number, maxLength: 12 },
);
const world = fc.record({
  endpoints,
  standing: fc.subarray([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]),
  pods: fc.subarray([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]),
  nodes: fc.uniqueArray(fc.record({ name: fc.constantFrom('n1', 'n2', 'n3', 'n4'), created: fc.nat(4) }), {
    selector: ({ name }) => name,
  }),
});

it('nothing of a living node is ever removed, and everything else is', () => {
  fc.assert(
    fc.property(world, (some) => {
      const made = some.endpoints.map(({ number, node, created, nodeUID }) =>
        createdEndpoint(number, node, nodeUID === undefined ? {} : { nodeUID }, created),
      );
      const nodes = some.nodes.map(({ name, created }) => nodeObject(name, '1420', { uid: 'new', created }));
      const standing = made.filter(({ metadata }) => some.standing.includes(Number(metadata.name.slice(1))));
      const snapshot = clusterOf([], made, {
        nodes,
        endpoints: standing,
        pods: some.pods.map((one) => podObject(one)),
      });
      const planned = planRemovals(snapshot);
      const released = new Set(planned.flatMap((one) => (one.reason === 'NodeGone' ? (one.endpoint ?? []) : [])));
      const entries = new Set(planned.flatMap((one) => one.entries));
      const isLiving = (endpoint: NetworkEndpoint): boolean => {
        const at = some.endpoints.find(({ number }) => endpoint.metadata.name === `e${number}`)!;
        const node = some.nodes.find(({ name }) => name === at.node);
        return node !== undefined && (at.nodeUID === undefined ? at.created >= node.created : at.nodeUID === 'new');
      };
      for (const endpoint of standing) expect(released.has(endpoint)).toBe(!isLiving(endpoint));
      const lasting = new Set(standing.filter(isLiving).map(endpointKey));
      for (const entry of [...snapshot.fdbEntries, ...snapshot.neighbors])
        expect(entries.has(entry)).toBe(!lasting.has(entry.status!.endpoint));
      expect(planned.flatMap((one) => one.entries)).toHaveLength(entries.size);
    }),
  );
});
