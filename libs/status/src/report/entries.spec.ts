import { describe, expect, it, test } from 'vitest';
import { z } from 'zod';
import { connectivityOf, peerOf, reportOf } from '../report.testdata.ts';
import { statusSchemas } from '../schemas.ts';
import { clusterView } from '../view/cluster-view.ts';
import { listOf, recordOf } from './entries.ts';
import { forwarding } from './forwarding.ts';
import { nodeReport } from './node-report.ts';

/** So many entries, each of its own name. */
const named = (most: number, entry: unknown): Record<string, unknown> =>
  Object.fromEntries(Array.from({ length: most }, (_, at) => [`n${at}`, entry]));

const withConnectivity = (over: object): object => reportOf({ connectivity: { ...connectivityOf(), ...over } });
const withEgress = (addresses: readonly unknown[]): object => ({
  ...reportOf(),
  egress: { isInForce: true, heldAddresses: addresses, steeredPods: 0 },
});
const groupsOf = (groups: number, members: number): object =>
  withConnectivity({ groups: named(groups, { family: 'IPv4', members: named(members, {}) }) });
const sessionsOf = (peers: number, sessions: number): object =>
  withConnectivity({ peers: named(peers, { ...peerOf(), wireGuard: named(sessions, {}) }) });
const answerOf = (entries: unknown): object => ({
  ...{ readTime: 't', dataplane: 'ebpf', total: 1, different: 1 },
  entries,
});
const entryOf = (wanted: unknown): object => ({ table: 't', key: 'k', state: 'Missing', wanted });
const list = (length: number, entry: unknown): unknown[] => Array.from({ length }, () => entry);

describe('a body of many bad entries is one issue', () => {
  it.each<[string, z.ZodType, object, string]>([
    ['members of groups', nodeReport, groupsOf(250, 256), 'connectivity.groups.n0.members.n0.tier'],
    ['members beyond their total', nodeReport, groupsOf(2000, 256), 'connectivity.groups'],
    ['sessions of peers', nodeReport, sessionsOf(30, 1024), 'connectivity.peers.n0.wireGuard.n0.rxBytes'],
    ['sessions beyond their total', nodeReport, sessionsOf(512, 1024), 'connectivity.peers'],
    ['peers', nodeReport, withConnectivity({ peers: named(10_000, {}) }), 'connectivity.peers.n0.health'],
    ['drops', nodeReport, { ...reportOf(), drops: named(256, -1) }, 'drops.n0'],
    ['problems', nodeReport, { ...reportOf(), problems: list(200, {}) }, 'problems.0.reason'],
    ['problems beyond their bound', nodeReport, { ...reportOf(), problems: list(500_000, 0) }, 'problems'],
    ['addresses', nodeReport, withEgress(list(1024, '')), 'egress.heldAddresses.0'],
    ['entries of a forwarding', forwarding, answerOf(list(20_000, {})), 'entries.0.table'],
    ['ways of a forwarding', forwarding, answerOf(list(500, entryOf(list(256, 0)))), 'entries.0.wanted.0'],
  ])('%s', (_, schema, body, path) => {
    const { error } = schema.safeParse(body);
    expect(error?.issues.map((issue) => issue.path.join('.'))).toEqual([path]);
  });

  it('of each member of a view', () => {
    const bad = named(10_000, {});
    const members = { sites: bad, pools: bad, nodes: bad, reach: named(100, bad), egress: bad, problems: bad };
    const view = { summary: {}, ...members, order: list(10_000, 0), ended: list(10_000, {}) };
    const { error } = clusterView.safeParse(view);
    const counts = Map.groupBy(error!.issues, ({ path }) => path[0]);
    for (const member of [...Object.keys(members), 'order', 'ended']) expect(counts.get(member)).toHaveLength(1);
  });
});

describe('entries', () => {
  it('are looked at up to the first bad one, and no further', () => {
    let looked = 0;
    const bad = z.custom<string>(() => {
      looked++;
      return false;
    });
    expect(recordOf(bad).safeParse(named(100_000, 'x')).error?.issues).toHaveLength(1);
    expect(listOf(bad).safeParse(list(100_000, 'x')).error?.issues).toHaveLength(1);
    expect(looked).toBe(2);
  });

  it('are read as they are, and a name of the prototype is none', () => {
    const schema = recordOf(listOf(z.object({ a: z.number() }), 2), { key: z.string().max(11) });
    const good = { x: [{ a: 1 }, { a: 2 }], constructor: [] };
    expect(schema.parse(JSON.parse('{"x":[{"a":1,"b":3},{"a":2}],"constructor":[],"__proto__":[{"a":9}]}'))).toEqual(
      good,
    );
    expect(Object.getPrototypeOf(schema.parse(good))).toBe(Object.prototype);
    const problem = (input: unknown) => schema.safeParse(input).error?.issues.map(({ path }) => path.join('.'));
    expect(problem(undefined)).toEqual(['']);
    expect(problem([])).toEqual(['']);
    expect(problem({ 'a name too long': [] })).toEqual(['a name too long']);
    expect(problem({ x: [{ a: 1 }, { a: 'b' }] })).toEqual(['x.1.a']);
    expect(problem({ x: [{}, {}, {}] })).toEqual(['x']);
  });
});

test('as many members and sessions as a plan has at most are taken, and no more groups of one site than it has', () => {
  const member = { tier: 0, isActive: true };
  const groups = (ofSite: (at: number) => string | undefined) =>
    Object.fromEntries(
      Array.from({ length: 2000 }, (_, at) => [
        `g${at}`,
        { site: ofSite(at), family: 'IPv4', members: named(16, member) },
      ]),
    );
  const session = { rxBytes: 0, txBytes: 0 };
  const peers = named(10_000, { ...peerOf(), wireGuard: { wg0: session, wg1: session } });
  const at = (body: object) => nodeReport.safeParse(body).error?.issues.map(({ path }) => path.join('.')) ?? [];
  expect(at(withConnectivity({ peers, groups: groups((index) => `s${Math.floor(index / 2)}`) }))).toEqual([]);
  expect(at(withConnectivity({ groups: groups(() => undefined) }))).toEqual([]);
  expect(at(withConnectivity({ groups: groups(() => 's2') }))).toEqual(['connectivity.groups']);
});

test('they are described as the records and lists that they are', () => {
  const { NodeReport, ClusterView } = statusSchemas();
  const lists = { type: 'array', maxItems: 200, items: { type: 'object', required: ['reason', 'message'] } };
  const groups = { type: 'object', additionalProperties: { required: ['family', 'members'] } };
  expect(NodeReport).toMatchObject({
    properties: {
      problems: lists,
      connectivity: { properties: { groups }, required: expect.arrayContaining(['groups']) as unknown },
    },
  });
  const reach = { type: 'object', additionalProperties: { type: 'object', additionalProperties: { type: 'object' } } };
  expect(ClusterView).toMatchObject({ properties: { reach } });
});
