/** Routes, rules and neighbors of others where ours would be. Runs in a network namespace of its own; prints what was seen as JSON. */
import { execFileSync } from 'node:child_process';
import { ROUTE_PROTOCOL, ROUTE_TABLE, RULE_PRIORITY } from '@unbounded/config/ownership';
import { createRouteSocket, type RouteSpec } from '@unbounded/netlink';
import type { Problem } from '@unbounded/topology';
import { ensureNeighbours } from '../../data-path/netlink/route-objects.ts';
import { ensureRules } from './rules.ts';
import { planFor } from '../../testdata.ts';
import { ensureRoutes, removeAllRoutes } from '../../kernel/routes.ts';

export interface Report {
  /** By table, family and metric: problems while the other's route is there, and the routes to the destination at each step. */
  readonly routes: Readonly<Record<string, RouteSeen>>;
  readonly rules: {
    readonly problems: readonly string[];
    readonly during: readonly string[];
    readonly after: readonly string[];
  };
  readonly neighbours: {
    readonly problems: readonly string[];
    readonly foreign: string;
    readonly learned: string;
    readonly own: string;
  };
}

interface RouteSeen {
  readonly problems: readonly string[];
  readonly messages: readonly string[];
  readonly during: readonly string[];
  /** Our routes are taken away. */
  readonly removed: readonly string[];
  /** The other's is gone, and ours wanted. */
  readonly freed: readonly string[];
}

const run = (...argv: string[]): string => execFileSync(argv[0]!, argv.slice(1), { encoding: 'utf8' });
const lines = (...argv: string[]): string[] =>
  run(...argv)
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean);
const reasons = (problems: readonly Problem[]): string[] => problems.map(({ reason }) => reason);

run('ip', 'link', 'set', 'lo', 'up');
run('ip', 'link', 'add', 'eth0', 'type', 'veth', 'peer', 'name', 'wire');
run('ip', 'link', 'add', 'ours', 'type', 'veth', 'peer', 'name', 'tunnel');
for (const peer of ['wire', 'tunnel']) run('ip', 'link', 'set', peer, 'up');
for (const [device, host] of [
  ['eth0', '1'],
  ['ours', '2'],
] as const) {
  run('ip', 'addr', 'add', `10.${host}.0.30/24`, 'dev', device);
  run('ip', 'addr', 'add', `fd00:${host}::30/64`, 'dev', device, 'nodad');
  run('ip', 'link', 'set', device, 'up');
}
await using net = createRouteSocket();
const link = (await net.links.get('ours'))!.index;

const tryRoute = async (dst: string, table: number, metric: string): Promise<RouteSeen> => {
  const gateway = dst.includes(':') ? 'fd00:1::1' : '10.1.0.1';
  const place = [dst, 'table', String(table)];
  const show = (): string[] => lines('ip', dst.includes(':') ? '-6' : '-4', 'route', 'show', ...place);
  const wanted: RouteSpec = { dst, table, protocol: ROUTE_PROTOCOL, link, mtu: 1400 };
  const metrics = metric === '' ? [] : ['metric', metric];
  run('ip', 'route', 'add', ...place, 'via', gateway, 'proto', 'static', ...metrics);
  const outcome = await ensureRoutes(net, [wanted], ROUTE_PROTOCOL);
  await outcome.removeStale();
  const during = show();
  await (await ensureRoutes(net, [], ROUTE_PROTOCOL)).removeStale();
  await removeAllRoutes(net);
  const removed = show();
  if (removed.length > 0) run('ip', 'route', 'del', ...place, ...metrics);
  const freed = await ensureRoutes(net, [wanted], ROUTE_PROTOCOL);
  const seen = show();
  // And again: what is ours is changed, not made.
  await ensureRoutes(net, [{ ...wanted, mtu: 1300 }], ROUTE_PROTOCOL);
  const changed = show();
  await removeAllRoutes(net);
  return {
    problems: [...reasons(outcome.foreign), ...reasons(outcome.problems)],
    messages: outcome.foreign.map(({ message }) => message),
    during,
    removed,
    freed: [...reasons(freed.foreign), ...seen, ...changed],
  };
};

const tryRules = async (): Promise<Report['rules']> => {
  const plan = planFor('w1', 'VXLAN', 'netlink');
  const show = (): string[] => lines('ip', 'rule', 'show').filter((line) => line.startsWith(`${RULE_PRIORITY}:`));
  run('ip', 'rule', 'add', 'priority', String(RULE_PRIORITY), 'table', String(ROUTE_TABLE));
  const problems = reasons(await ensureRules(net, plan));
  const during = show();
  await ensureRules(net, undefined);
  const after = show();
  run('ip', 'rule', 'del', 'priority', String(RULE_PRIORITY));
  return { problems, during, after };
};

const tryNeighbours = async (): Promise<Report['neighbours']> => {
  const neighbour = (address: string) => ({
    family: 4 as const,
    link,
    address,
    mac: '02:0a:02:00:09:ff',
    state: 'permanent' as const,
  });
  const show = (address: string): string => run('ip', 'neigh', 'show', address, 'dev', 'ours').trim();
  run('ip', 'neigh', 'add', '10.2.0.8', 'lladdr', '02:00:00:00:00:01', 'dev', 'ours', 'nud', 'permanent');
  run('ip', 'neigh', 'add', '10.2.0.7', 'lladdr', '02:00:00:00:00:02', 'dev', 'ours', 'nud', 'stale');
  const problems = reasons(await ensureNeighbours(net, ['10.2.0.7', '10.2.0.8', '10.2.0.9'].map(neighbour)));
  problems.push(...reasons(await ensureNeighbours(net, [{ ...neighbour('10.2.0.9'), mac: '02:0a:02:00:0a:ff' }])));
  return { problems, foreign: show('10.2.0.8'), learned: show('10.2.0.7'), own: show('10.2.0.9') };
};

const routes: Record<string, RouteSeen> = {};
for (const dst of ['192.0.2.0/24', '2001:db8::/64'])
  for (const table of [254, ROUTE_TABLE])
    for (const metric of ['', '7']) routes[`${dst} ${table} ${metric}`.trim()] = await tryRoute(dst, table, metric);
const report: Report = { routes, rules: await tryRules(), neighbours: await tryNeighbours() };
console.log(JSON.stringify(report));
