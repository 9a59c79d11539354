/** Nodes without a default route, with several devices, and what a died agent left. Runs in a network namespace of its own; prints what was seen as JSON. */
import { execFileSync } from 'node:child_process';
import { createRouteSocket } from '@unbounded/netlink';
import { LINK_GROUP } from './devices.ts';
import { createUnderlayWatch, findProtocols, findUnderlay, type Underlay } from './underlay.ts';

export interface Report {
  readonly byAddress: Underlay | undefined;
  readonly onLoopback: Underlay | undefined;
  readonly byDefaultRoute: Underlay | undefined;
  readonly unknown: Awaited<ReturnType<ReturnType<typeof createUnderlayWatch>['look']>>;
  /** After the device lost its address and there was no default route. */
  readonly lost: Awaited<ReturnType<ReturnType<typeof createUnderlayWatch>['look']>>;
  readonly protocols: {
    readonly clean: readonly string[];
    readonly withLeftover: readonly string[];
    readonly withForeign: readonly string[];
  };
  readonly links: { readonly afterLeftover: boolean; readonly afterForeign: boolean };
}

const run = (...argv: string[]): string => execFileSync(argv[0]!, argv.slice(1), { encoding: 'utf8' });
const isThere = (name: string): boolean => run('ip', '-br', 'link').includes(`${name} `);
await using net = createRouteSocket();
const add = (name: string, mtu: number, address: string): void => {
  run('ip', 'link', 'add', name, 'mtu', String(mtu), 'type', 'veth', 'peer', 'name', `${name}-peer`);
  run('ip', 'addr', 'add', address, 'dev', name);
  for (const end of [name, `${name}-peer`]) run('ip', 'link', 'set', end, 'up');
};
run('ip', 'link', 'set', 'lo', 'up');
const watch = createUnderlayWatch((ips) => findUnderlay(net, ips));
const unknown = await createUnderlayWatch((ips) => findUnderlay(net, ips)).look(['10.1.0.30']);
add('eth0', 1500, '192.0.2.1/24');
add('eth1', 9000, '10.1.0.30/24');
const byAddress = (await watch.look(['10.1.0.30'])).underlay; // no default route at all
run('ip', 'addr', 'del', '10.1.0.30/24', 'dev', 'eth1');
const lost = await watch.look(['10.1.0.30']);
run('ip', 'addr', 'add', '10.1.0.30/32', 'dev', 'lo');
run('ip', 'route', 'add', 'default', 'dev', 'eth0');
const onLoopback = await findUnderlay(net, ['10.1.0.30']);
const byDefaultRoute = await findUnderlay(net);
const clean = await findProtocols(net);
const probe = (group: string): void => {
  run('ip', 'link', 'add', 'ub-probe', 'group', group, 'type', 'bridge');
};
probe(String(LINK_GROUP));
const withLeftover = await findProtocols(net);
const afterLeftover = isThere('ub-probe');
if (afterLeftover) run('ip', 'link', 'del', 'ub-probe');
probe('0');
const withForeign = await findProtocols(net);
const afterForeign = isThere('ub-probe');
const report: Report = {
  byAddress,
  onLoopback,
  byDefaultRoute,
  unknown,
  lost,
  protocols: { clean, withLeftover, withForeign },
  links: { afterLeftover, afterForeign },
};
process.stdout.write(JSON.stringify(report));
