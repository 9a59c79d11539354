import { describe, expect, it } from 'vitest';
import type { ClusterView } from './cluster-view.ts';
import { composeView } from './compose.ts';
import type { ClusterNode, ViewInputs } from './inputs.ts';
import { reportOf } from '../report.testdata.ts';
import { NOW, received } from './view.testdata.ts';

type Claims = Readonly<Record<string, readonly string[]>>;

const nodeOf = (name: string): ClusterNode => ({ name, ready: 'True', faults: [], knownMs: 60_000 });

/** Nodes that report, each with the egress addresses that it answers for. */
const inputsOf = (claims: Claims): ViewInputs => ({
  sites: [],
  pools: [],
  nodes: Object.keys(claims).sort().map(nodeOf),
  reports: new Map(
    Object.entries(claims).map(([node, heldAddresses]) => [
      node,
      received(reportOf({ egress: { isInForce: true, heldAddresses: [...heldAddresses], steeredPods: 0 } })),
    ]),
  ),
});
const view = (claims: Claims, before?: ClusterView): ClusterView => composeView(inputsOf(claims), before, NOW);

const VICTIMS = 20;
const addressOf = (at: number): string => `203.0.113.${100 + at}`;
const addresses = Array.from({ length: VICTIMS }, (_, at) => addressOf(at));
/** First by name, so that whoever blames the first one blames them. */
const victims: Claims = Object.fromEntries(addresses.map((address, at) => [`a${100 + at}`, [address]]));

const ofKind = ({ problems }: ClusterView, kind: string): string[] =>
  Object.values(problems).flatMap((problem) => (problem.kind === kind ? [problem.name] : []));

describe('a node that claims egress addresses of others', () => {
  it('is one problem of its own, and none of theirs', () => {
    const composed = view({ ...victims, zz: addresses });
    expect(composed.order).toEqual(['Node/zz/EgressAddressConflict']);
    expect(composed.problems['Node/zz/EgressAddressConflict']).toMatchObject({
      severity: 'critical',
      message:
        'node zz reports that it answers for egress addresses 203.0.113.100, 203.0.113.101, 203.0.113.102, 203.0.113.103, 203.0.113.104 and 15 more, for which a100, a101, a102, a103, a104 and 15 more report the same',
    });
    for (const victim of Object.keys(victims)) expect(composed.nodes[victim]?.problems).toBe(0);
    expect(composed.egress['203.0.113.100']).toEqual({ owners: ['a100', 'zz'] });
  });

  it('blames nobody with the addresses of one alone: nobody can say which of the two is right', () => {
    const composed = view({ ...victims, a100: ['203.0.113.9', '203.0.113.7'], zz: ['203.0.113.7', '203.0.113.9'] });
    expect(ofKind(composed, 'Node')).toEqual([]);
    expect(composed.problems['EgressAddress/203.0.113.7/EgressAddressConflict']).toMatchObject({
      severity: 'critical',
      claimants: ['a100', 'zz'],
      message: 'nodes a100, zz both report that they answer for egress addresses 203.0.113.7, 203.0.113.9',
    });
    expect(composed.summary.problems.critical).toBe(1);
  });

  it('does not hide that others are at odds', () => {
    const composed = view({ ...victims, b1: ['203.0.113.7'], b2: ['203.0.113.7'], zz: addresses });
    expect(ofKind(composed, 'EgressAddress')).toEqual(['203.0.113.7']);
    expect(ofKind(composed, 'Node')).toEqual(['zz']);
  });

  it('fills no list of what ended lately, whoever of them it is at odds with', () => {
    let before = view({ ...victims, b1: ['203.0.113.7'], b2: ['203.0.113.7'] });
    before = view(victims, before);
    for (const address of addresses) before = view(victims, view({ ...victims, zz: [address] }, before));
    for (let round = 0; round < VICTIMS; round++) before = view(victims, view({ ...victims, zz: addresses }, before));
    const ended = Map.groupBy(before.ended, ({ kind, claimants }) => `${kind} ${claimants?.includes('zz') ?? ''}`);
    expect(ended.get('EgressAddress true')).toHaveLength(5);
    expect(ended.get('Node ')).toHaveLength(5);
    expect(ended.get('EgressAddress false')).toMatchObject([{ name: '203.0.113.7', claimants: ['b1', 'b2'] }]);
  });
});
