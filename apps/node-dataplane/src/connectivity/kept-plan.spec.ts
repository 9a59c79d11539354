import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CONNECTIVITY, keptPlanFile } from '@unbounded/config/ownership';
import { createLogger } from '@unbounded/telemetry';
import { type BoundaryPlan, findMember, type NodePlan, parseWorld, planNode } from '@unbounded/topology';
import { anyCluster } from '@unbounded/topology/random-cluster';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { openKeptSections } from '../agent/kept-sections.ts';
import { renderPlan } from '../data-path/render.ts';
import { createStateFaults } from '../state/state-faults.ts';
import { keepPlan, parseKeptPlan, readKeptPlan } from './kept-plan.ts';

/** As agents wrote it: these files are never written anew; a later form has files of its own beside them. */
const FROZEN = ['v1-worker', 'v1-gateway'] as const;

const textOf = (name: (typeof FROZEN)[number]): string =>
  readFileSync(join(import.meta.dirname, 'kept-plans', `${name}.json`), 'utf8');
interface KeptV1 {
  readonly version: 1;
  readonly plan: NodePlan;
}
/** Files of before have no boundary: a gateway's is what it reaches directly besides its own pods, a worker has none. */
const BOUNDARIES = {
  'v1-worker': { ownPods: ['100.65.30.0/24'], exits: [], entries: [] },
  'v1-gateway': { ownPods: ['100.65.20.0/24'], exits: ['10.1.0.0/24'], entries: ['10.1.0.0/24'] },
} as const satisfies Record<(typeof FROZEN)[number], BoundaryPlan>;
const frozen = (name: (typeof FROZEN)[number]): KeptV1 => {
  const { version, plan } = JSON.parse(textOf(name)) as KeptV1;
  return { version, plan: { ...plan, boundary: BOUNDARIES[name] } };
};

const never = (reason: string): void => expect.unreachable(reason);

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'kept-plan-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

const open = () => openKeptSections(folder, [CONNECTIVITY], createStateFaults()).of(CONNECTIVITY);
/** What an agent makes of a file with this text, and what it logs of it. */
const readText = (text: string): { readonly plan: NodePlan | undefined; readonly reasons: readonly string[] } => {
  writeFileSync(keptPlanFile(CONNECTIVITY, folder), text);
  const reasons: string[] = [];
  const write = (line: string): void => {
    const { reason } = JSON.parse(line) as { reason?: string };
    if (reason !== undefined) reasons.push(reason);
  };
  return { plan: readKeptPlan(open(), createLogger({ name: 'test', destination: { write } })), reasons };
};

describe.each(FROZEN)('a kept plan of version 1 (%s)', (name) => {
  test('is read whole', () => {
    expect(readText(textOf(name))).toEqual({ plan: frozen(name).plan, reasons: [] });
  });

  test('is rendered by both data paths', () => {
    const { plan } = readText(textOf(name));
    for (const kind of ['ebpf', 'netlink'] as const) {
      const { tunnels, routes, groups } = renderPlan(kind, plan!);
      expect([tunnels.length, routes.length, groups.length].every((count) => count > 0)).toBe(true);
    }
  });

  test('is what is written of it', () => {
    keepPlan(open(), frozen(name).plan);
    expect(open().read()).toEqual(frozen(name));
  });
});

test('the plan of any node is read as it was kept', () => {
  fc.assert(
    fc.property(anyCluster, (objects) => {
      const world = parseWorld(objects);
      const members = [...world.workers, ...[...world.pools.values()].flatMap(({ gateways }) => gateways)];
      for (const { name } of members) {
        const plan = planNode(world, { member: findMember(world, name)!, underlayMtuBytes: 1500 });
        const kept: unknown = JSON.parse(JSON.stringify(plan));
        expect(parseKeptPlan({ version: 1, plan: kept }, never)).toEqual(kept);
      }
    }),
    { numRuns: 100 },
  );
});

test('between two protocols it has fields of its own', () => {
  const { plan } = frozen('v1-worker');
  const [first, ...blocks] = plan.blocks;
  const moving = { ...plan, blocks: [{ ...first!, alsoFrom: 'pending' }, ...blocks], alsoPlain: ['192.0.2.0/24'] };
  expect(parseKeptPlan({ version: 1, plan: moving }, never)).toEqual(moving);
});

test.each([
  ['cut short', (text: string) => text.slice(0, -20)],
  ['empty', () => ''],
  ['of something else', () => '"plan"'],
])('a file that is %s holds no plan', (_, damage) => {
  expect(readText(damage(textOf('v1-worker'))).plan).toBeUndefined();
});

test('a plan of a later version is not read, however it looks', () => {
  const { plan, reasons } = readText(JSON.stringify({ ...frozen('v1-worker'), version: 2 }));
  expect([plan, reasons]).toEqual([undefined, ['version 2 of the form: this agent reads 1']]);
});

test('fields that a plan need not have stay absent, and those that are not known are left out', () => {
  const { plan } = frozen('v1-gateway');
  const { relay: _, ...without } = plan;
  expect(parseKeptPlan({ version: 1, plan: without }, never)).toEqual(without);
  expect(parseKeptPlan({ version: 1, plan: { ...plan, later: true } }, never)).toEqual(plan);
});

test.each<readonly [string, (plan: NodePlan) => object]>([
  ['plan: ', () => []],
  ['plan.blocks: ', (plan) => ({ ...plan, blocks: undefined })],
  ['plan.role: ', (plan) => ({ ...plan, role: 'relay' })],
  ['plan.mtuBytes: ', (plan) => ({ ...plan, mtuBytes: '1450' })],
  ['plan.podCidrs[0]: must be a prefix', (plan) => ({ ...plan, podCidrs: ['100.65.30.0'] })],
  ['plan.blocks[0].prefix: must be a prefix', (plan) => ({ ...plan, blocks: [{ ...plan.blocks[0], prefix: 'x' }] })],
  ['plan.blocks[0].to: ', (plan) => ({ ...plan, blocks: [{ ...plan.blocks[0], to: { nextHop: {} } }] })],
  [
    'plan.tunnels[0].remoteIp: must be an address',
    (plan) => ({ ...plan, tunnels: [{ ...plan.tunnels[0], remoteIp: '' }] }),
  ],
  ['plan.holdings: ', (plan) => ({ ...plan, holdings: null })],
])('a malformed one is rejected, and the log names the field: %s', (reason, spoil) => {
  const { plan, reasons } = readText(JSON.stringify({ version: 1, plan: spoil(frozen('v1-worker').plan) }));
  expect([plan, reasons]).toEqual([undefined, [expect.stringContaining(reason)]]);
});

test('whatever stands in a file, it is a plan or it is rejected', () => {
  fc.assert(
    fc.property(fc.constantFrom(...FROZEN), fc.nat(), fc.jsonValue(), (name, at, value) => {
      const { plan } = frozen(name);
      const fields = Object.keys(plan);
      const reasons: string[] = [];
      const spoilt = { ...plan, [fields[at % fields.length]!]: value };
      const parsed = parseKeptPlan({ version: 1, plan: spoilt }, (reason) => reasons.push(reason));
      expect(reasons).toHaveLength(parsed ? 0 : 1);
    }),
  );
});
