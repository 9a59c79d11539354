import type { GatewayPool, GatewayPoolNode } from '@unbounded/crds';
import { expect, test } from 'vitest';
import { node, pool, poolNodeOf, seen, watching, world } from './gateway-world.testdata.ts';
import { planGateways } from './gateways.plan.ts';
import { planPoolConditions } from './pool-conditions.plan.ts';

test('conditions say who is missing, who is silent, and what helps', () => {
  const nodes = [node('g', { gateway: 'p' }), node('waiting', { gateway: 'p' }, { key: false })];
  const [plan] = planGateways(world({ nodes, pools: [pool('p')] })).pools;
  const { observed, see, pass } = watching();
  see([poolNodeOf('g', '2026-01-01T00:00:17Z')]);
  const reported = poolNodeOf('g', '2026-01-01T00:00:30Z');
  see([reported], 13_000);
  expect(planPoolConditions(plan!, [reported], seen(observed))).toMatchObject([
    { type: 'GatewaysAvailable', status: 'True', observedGeneration: 3 },
    {
      type: 'NodesEligible',
      status: 'False',
      reason: 'NoPublicKey',
      message:
        'waiting has no usable WireGuard key (the node agent writes it; see the Node’s condition UnboundedNodeAccepted)',
    },
    { type: 'GatewaysReporting', status: 'True' },
    { type: 'GatewaysForwarding', status: 'True' },
    { type: 'SelectorProtected', status: 'False', reason: 'KubeletCanSetLabels' },
    { type: 'ExternalNamesResolved', status: 'True' },
  ]);
  pass(40_000);
  expect(planPoolConditions(plan!, [reported], seen(observed))[2]).toMatchObject({
    status: 'False',
    reason: 'ReportStale',
  });
});

test('a pool names its gateways that say that they do not forward, and nobody else', () => {
  const [plan] = planGateways(world({ nodes: [node('g1', { gateway: 'p' })], pools: [pool('p')] })).pools;
  const said = new Map([
    ['g1', 'HostFirewallBlocks'],
    ['worker', 'NotForwarding'],
  ]);
  expect(planPoolConditions(plan!, [], seen(watching().observed, said))[3]).toMatchObject({
    ...{ type: 'GatewaysForwarding', status: 'False', reason: 'NotForwarding' },
    message: '1 of 1 gateways do not forward: g1 (HostFirewallBlocks)',
  });
});

test.each(['1970-01-01T00:00:00Z', '2026-01-01T00:00:00Z', '2099-01-01T00:00:00Z'])(
  'a gateway whose clock shows %s is silent 40 s after its report last changed, by the clock of who watches',
  (start) => {
    const [plan] = planGateways(world({ nodes: [node('g', { gateway: 'p' })], pools: [pool('p')] })).pools;
    const { observed, see, pass } = watching();
    const report = (second: number): GatewayPoolNode =>
      poolNodeOf('g', new Date(Date.parse(start) + second * 1000).toISOString());
    const reporting = (subject: GatewayPoolNode) => planPoolConditions(plan!, [subject], seen(observed))[2];
    see([report(0)]);
    see([report(13)], 13_000);
    expect(reporting(report(13))).toMatchObject({ status: 'True' });
    see([report(13)], 39_000);
    expect(reporting(report(13))).toMatchObject({ status: 'True' });
    pass(1000);
    expect(reporting(report(13))).toMatchObject({ status: 'False', reason: 'ReportStale' });
    see([report(-3600)]); // its clock was set back: it speaks all the same
    expect(reporting(report(-3600))).toMatchObject({ status: 'True' });
  },
);

test('a new watcher neither calls a gateway silent for an old report, nor takes back what the pool said of a silent one', () => {
  const silent = { type: 'GatewaysReporting', status: 'False', reason: 'ReportStale', message: 'silent: g' } as const;
  const planned = (status?: object) => {
    const subject = { ...pool('p'), ...(status && { status }) };
    return planGateways(world({ nodes: [node('g', { gateway: 'p' })], pools: [subject] })).pools[0]!;
  };
  const { observed, see, pass } = watching();
  const old = poolNodeOf('g', '2020-01-01T00:00:00Z');
  see([old]);
  expect(planPoolConditions(planned(), [old], seen(observed))[2]).toMatchObject({ status: 'True' });
  expect(planPoolConditions(planned({ conditions: [silent] }), [old], seen(observed))[2]).toMatchObject(silent);
  pass(40_000);
  expect(planPoolConditions(planned(), [old], seen(observed))[2]).toMatchObject({
    status: 'False',
    reason: 'ReportStale',
  });
});

test('a gateway that joined a moment ago has not reported yet; after 40 s it is silent', () => {
  const [plan] = planGateways(world({ nodes: [node('g', { gateway: 'p' })], pools: [pool('p')] })).pools;
  const { observed, see, pass } = watching();
  const poolNode = poolNodeOf('g');
  const reporting = (objects: readonly GatewayPoolNode[]) => planPoolConditions(plan!, objects, seen(observed))[2];
  expect(reporting([])).toMatchObject({ status: 'Unknown', reason: 'AwaitingFirstReport' });
  see([poolNode]);
  pass(39_000);
  expect(reporting([poolNode])).toMatchObject({
    status: 'Unknown',
    reason: 'AwaitingFirstReport',
    message: 'joined less than 40 s ago and have not reported yet: g',
  });
  pass(1000);
  expect(reporting([poolNode])).toMatchObject({
    status: 'False',
    reason: 'ReportStale',
    message: 'no report for more than 40 s: g; the last report stays in effect',
  });
});

test('a deleted pool says which gateways keep it; one that is not deleted says nothing of it', () => {
  const alive = pool('p');
  const deleted = { ...alive, metadata: { ...alive.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } };
  const deletable = (subject: GatewayPool) => {
    const [plan] = planGateways(world({ nodes: [node('g', { gateway: 'p' })], pools: [subject] })).pools;
    return planPoolConditions(plan!, [], seen(watching().observed)).find(({ type }) => type === 'Deletable');
  };
  expect(deletable(alive)).toBeUndefined();
  expect(deletable(deleted)).toMatchObject({
    status: 'False',
    reason: 'InUse',
    message: 'members: g; the pool goes when no node has the labels of spec.nodeSelector any more',
  });
});

test('an empty pool says that no node can be a gateway', () => {
  const [plan] = planGateways(world({ pools: [pool('p')] })).pools;
  expect(planPoolConditions(plan!, [], seen(watching().observed))[0]).toMatchObject({
    status: 'False',
    reason: 'NoGateways',
  });
});

test('a pool that selects by a label that kubelets cannot set, or names its nodes, is protected', () => {
  const protection = (spec: Partial<GatewayPool['spec']>) => {
    const [plan] = planGateways(world({ pools: [pool('p', spec)] })).pools;
    return planPoolConditions(plan!, [], seen(watching().observed)).find(({ type }) => type === 'SelectorProtected');
  };
  expect(protection({ nodeSelector: { 'node-restriction.kubernetes.io/gateway-of': 'p' } })).toMatchObject({
    status: 'True',
  });
  expect(protection({ nodeNames: ['g'] })).toMatchObject({ status: 'True' });
  expect(protection({})!.message).toContain('("gateway") on its own Node');
});
