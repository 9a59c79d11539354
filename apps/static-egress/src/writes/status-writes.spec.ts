import { createObjectWrites } from '@unbounded/controller-runtime';
import {
  type AssignedAddress,
  GROUP_VERSION,
  MAX_EGRESS_ASSIGNED_ADDRESSES,
  type StaticEgressIP,
} from '@unbounded/crds';
import type { EgressPlan } from '@unbounded/egress';
import { createMetrics, silentLogger } from '@unbounded/telemetry';
import { expect, test } from 'vitest';

import { conflict, type LaggingStore, laggingStore } from '../lagging-store.testdata.ts';
import { writeAllocations } from './status-writes.ts';

const entry = (address: string, rest: Partial<AssignedAddress> = {}): AssignedAddress => ({
  ...{ address, rule: 0, selection: 'print', pool: 'public' },
  ...rest,
});
const OWNED = { node: 'n1', epoch: 3, since: '2026-01-01T00:00:00Z' };

const ruleWith = (addresses: readonly AssignedAddress[]): StaticEgressIP => ({
  apiVersion: GROUP_VERSION,
  kind: 'StaticEgressIP',
  metadata: { name: 'partner', namespace: 'shop' },
  spec: { rules: [{ podSelector: {}, pool: 'public', cidr: '0.0.0.0/0' }] },
  status: { addresses: [...addresses], pods: 2 },
});

const allocate = (rules: LaggingStore<StaticEgressIP>, addresses: readonly AssignedAddress[]) => {
  const ruleStatuses = new Map([['StaticEgressIP/shop/partner', { addresses, pods: 7, conditions: [] }]]);
  const recorder = { record: () => {}, flush: async () => {}, dropped: 0 };
  return writeAllocations({ rules: rules.cache.list(), clusterRules: [] }, { ruleStatuses } as unknown as EgressPlan, {
    clients: {
      rules: rules.client,
      clusterRules: laggingStore<never>('ClusterStaticEgressIP').client,
      pools: laggingStore<never>('EgressIPPool').client,
    },
    writes: createObjectWrites({ recorder, logger: silentLogger, metrics: createMetrics() }),
    recorder,
    pace: async () => {},
    signal: new AbortController().signal,
  });
};
const statusOf = (rules: LaggingStore<StaticEgressIP>) => rules.objects.get('partner')?.status;

test('an address that a pool gives is written without an owner, beside the owner of one that the rule has no longer', async () => {
  const rules = laggingStore('StaticEgressIP', ruleWith([entry('192.0.2.1', OWNED)]));
  const { rules: written, unwritten } = await allocate(rules, [entry('192.0.2.2', { node: 'n2', epoch: 1 })]);
  expect(statusOf(rules)).toMatchObject({ addresses: [entry('192.0.2.2'), entry('192.0.2.1', OWNED)], pods: 2 });
  expect(written).toEqual([rules.objects.get('partner')]);
  expect(unwritten).toEqual(new Set());
});

test('a full status has room for what a pool gives', async () => {
  const former = Array.from({ length: MAX_EGRESS_ASSIGNED_ADDRESSES }, (_, at) =>
    entry(`2001:db8::${at.toString(16)}`),
  );
  const rules = laggingStore('StaticEgressIP', ruleWith(former));
  await allocate(rules, [former[9]!, entry('192.0.2.2')]);
  const { addresses = [] } = statusOf(rules)!;
  expect(addresses.slice(0, 3)).toEqual([former[9], entry('192.0.2.2'), former[0]]);
  expect(addresses).toHaveLength(MAX_EGRESS_ASSIGNED_ADDRESSES);
});

test('an address whose allocation the API server does not take is named', async () => {
  const rules = laggingStore('StaticEgressIP', ruleWith([]));
  rules.onWrite = () => {
    throw conflict();
  };
  const { rules: written, unwritten } = await allocate(rules, [entry('192.0.2.2')]);
  expect(unwritten).toEqual(new Set(['192.0.2.2']));
  expect(written).toEqual(rules.cache.list());
});

test('at rest, and for addresses that rules name, nothing is written', async () => {
  const rules = laggingStore('StaticEgressIP', ruleWith([entry('192.0.2.1', OWNED)]));
  const { pool: _, ...named } = entry('192.0.2.9');
  await allocate(rules, [entry('192.0.2.1'), named]);
  expect(rules.writes).toEqual([]);
});
