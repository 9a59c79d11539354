import { annotations, type GatewayPool, GROUP_VERSION, labels } from '@unbounded/crds';
import { expect, test } from 'vitest';

import { createFactsDamper, nodeFacts, type NodeFacts } from './index.ts';
import { keyOf } from './settle.testdata.ts';

interface Init {
  readonly notes?: Record<string, string>;
  readonly labels?: Record<string, string>;
  readonly addresses?: readonly { readonly type: string; readonly address: string }[];
  readonly pods?: readonly string[];
}
const node = ({ notes = {}, labels: own = {}, addresses = [], pods = [] }: Init = {}): NodeFacts =>
  nodeFacts({
    metadata: {
      name: 'n',
      uid: 'uid-n',
      labels: own,
      annotations: { [annotations.wireGuardPublicKey]: keyOf(1), ...notes },
    },
    spec: { podCIDRs: pods },
    status: { addresses: [{ type: 'InternalIP', address: '10.1.0.1' }, ...addresses] },
  });
const noted = (name: keyof typeof annotations, value: string) => node({ notes: { [annotations[name]]: value } });
const pool = (nodeSelector: Record<string, string>): GatewayPool => ({
  apiVersion: GROUP_VERSION,
  kind: 'GatewayPool',
  metadata: { name: 'p' },
  spec: { nodeSelector },
});

const damping = (pools: readonly GatewayPool[] = []) => {
  let nowMs = 0;
  const damper = createFactsDamper<{ readonly facts: NodeFacts }>(() => nowMs);
  const state = (facts: NodeFacts) => damper.accept([{ facts }], pools);
  const stands = (facts: NodeFacts): NodeFacts => state(facts).standing[0]!.facts;
  return {
    state,
    stands,
    pass: (ms: number) => void (nowMs += ms),
    /** Its five changes at once, to and fro: `other` stands, and the next change waits. */
    exhaust: (one: NodeFacts, other: NodeFacts): void => {
      for (const facts of [one, other, one, other, one, other]) expect(stands(facts)).toBe(facts);
    },
  };
};

const damped = (facts: NodeFacts) => ({
  ...facts,
  problems: [expect.objectContaining({ reason: 'FactsDamped' }), ...facts.problems],
});

test('a locator is the allocator’s: it stands at once while a node’s own changes wait', () => {
  const { stands, exhaust } = damping();
  const [one, other] = [node(), noted('tunnelProtocols', 'VXLAN')];
  exhaust(one, other);
  const given = noted('l2Locator', 'fd53:ab:cd:1::/64');
  expect(stands(given)).toMatchObject({ l2Locator: 'fd53:ab:cd:1::/64', tunnelProtocols: ['VXLAN'] });
  expect(stands(one)).not.toHaveProperty('l2Locator');
});

test.each<[string, NodeFacts]>([
  ['key', noted('wireGuardPublicKey', keyOf(2))],
  ['next key', noted('wireGuardNextPublicKey', keyOf(2))],
  ['number of its key', noted('wireGuardKeyGeneration', '7')],
  ['protocols', noted('tunnelProtocols', 'VXLAN')],
  ['features', noted('features', 'node-addresses')],
  ['external addresses', noted('externalAddress', '192.0.2.1')],
  ['DNS names', noted('externalAddress', 'gw.example.com')],
  ['internal addresses', node({ addresses: [{ type: 'InternalIP', address: '10.1.0.2' }] })],
  ['addresses of type ExternalIP', node({ addresses: [{ type: 'ExternalIP', address: '192.0.2.9' }] })],
  ['label by which a pool selects it', node({ labels: { role: 'gateway' } })],
  ['mistakes', noted('wireGuardPublicKey', 'no key')],
])('a node that changes its %s to and fro keeps what was accepted last, says so, and gets its turn', (_, other) => {
  const { state, stands, exhaust, pass } = damping([pool({ role: 'gateway' })]);
  const one = node();
  exhaust(one, other);
  const { standing, damped: names, nextMs } = state(one);
  expect([...names]).toEqual(['n']);
  expect(standing[0]!.facts).toEqual(damped(other));
  pass(nextMs! - 1);
  expect(stands(one)).toEqual(damped(other));
  pass(1);
  expect(stands(one)).toEqual(damped(one));
});

const rotated = (generation: number, hasNext: boolean): NodeFacts =>
  node({
    notes: {
      [annotations.wireGuardPublicKey]: keyOf(generation + 1),
      ...(generation === 0 ? {} : { [annotations.wireGuardKeyGeneration]: String(generation) }),
      ...(hasNext ? { [annotations.wireGuardNextPublicKey]: keyOf(generation + 2) } : {}),
    },
  });

test('a node that joins, and exchanges its key at once, is damped at no step', () => {
  const { stands } = damping();
  const steps = [
    node({ notes: { [annotations.wireGuardPublicKey]: '' } }),
    node(), // the agent's first report
    node({ pods: ['100.64.0.0/24'] }),
    noted('externalAddress', '192.0.2.1'),
    node({ labels: { role: 'gateway' } }),
    rotated(0, true),
    rotated(1, false),
  ];
  for (const facts of steps) expect(stands(facts)).toBe(facts);
});

test('key rotations one after the other, as fast as an agent makes them, are damped at no step', () => {
  const { stands, pass } = damping();
  stands(rotated(0, false));
  for (let generation = 0; generation < 50; generation++) {
    for (const facts of [rotated(generation, true), rotated(generation + 1, false)]) {
      expect(stands(facts)).toBe(facts);
      pass(30_000); // nothing came over the old key for so long
    }
    pass(270_000); // the previous key is kept for five minutes
  }
});

test('a node that exchanges its key without an end is damped', () => {
  const { stands, pass } = damping();
  let accepted = 0;
  for (let step = 0; step < 600; step++, pass(100)) {
    const facts = rotated(step >> 1, step % 2 === 1);
    if (stands(facts).wireGuardPublicKey === facts.wireGuardPublicKey) accepted++;
  }
  expect(accepted).toBeLessThanOrEqual(2 * 8 + 2);
});

test('what only others than the node write is taken over at once', () => {
  const protectedLabel = 'node-restriction.kubernetes.io/gateway';
  const { stands, exhaust } = damping([pool({ [protectedLabel]: 'yes' })]);
  const other = noted('wireGuardPublicKey', keyOf(2));
  exhaust(node(), other);
  const changed = node({
    labels: { [protectedLabel]: 'yes', [labels.site]: 'a' },
    pods: ['100.64.0.0/24'],
    notes: { [annotations.wireGuardPort]: '51821', [annotations.rotateWireGuardKey]: 'now' },
  });
  expect(stands(changed)).toMatchObject({
    wireGuardPublicKey: keyOf(2),
    labels: { [protectedLabel]: 'yes' },
    podCIDRs: ['100.64.0.0/24'],
    wireGuardPort: 51_821,
    rotateKey: 'now',
  });
});

test('labels that no pool reads, and reports without a change, use up nothing', () => {
  const { stands } = damping([pool({ role: 'gateway' })]);
  for (let count = 0; count < 100; count++) {
    const facts = node({ labels: { beat: String(count) } });
    expect(stands(facts)).toBe(facts);
  }
});

test('a pool that selects all nodes by a label that they had is no change of theirs', () => {
  let pools: GatewayPool[] = [];
  const damper = createFactsDamper<{ readonly facts: NodeFacts }>(() => 0);
  const facts = node({ labels: { role: 'gateway' } });
  for (let count = 0; count < 20; count++) {
    pools = count % 2 === 0 ? [] : [pool({ role: 'gateway' })];
    expect(damper.accept([{ facts: { ...facts } }], pools).damped.size).toBe(0);
  }
});
