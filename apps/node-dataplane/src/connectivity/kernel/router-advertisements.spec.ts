import { LINK_ALIAS } from '@unbounded/config/ownership';
import type { Link, LinkKind, Route, RouteSocket } from '@unbounded/netlink';
import { expect, test } from 'vitest';
import { advertisementDevices } from './router-advertisements.ts';

const link = (index: number, name: string, kind?: LinkKind, changes: Partial<Link> = {}): Link =>
  ({ index, name, hardwareType: 1, ...(kind && { kind }), ...changes }) as Link;
const other = (name: string): LinkKind => ({ kind: 'other', name });

const find = (links: readonly Link[], routes: readonly Partial<Route>[] = []): Promise<string[]> =>
  advertisementDevices({
    routes: { list: async () => routes },
    links: { list: async () => links },
  } as unknown as RouteSocket);

test('uplinks may learn before their first advertisement: hardware, bonds, teams, VLANs, and bridges with such a port', async () => {
  const links = [
    link(1, 'eth0'),
    link(2, 'bond0', other('bond')),
    link(3, 'team0', other('team')),
    link(4, 'bond0.5', other('vlan')),
    link(5, 'br0', { kind: 'bridge' }),
    link(6, 'bond0.6', other('vlan'), { master: 5 }),
  ];
  expect(await find(links)).toEqual(links.map(({ name }) => name));
});

test('bridges of containers, and devices of ours, may not', async () => {
  const links = [
    link(1, 'docker0', { kind: 'bridge' }),
    link(2, 'veth1', { kind: 'veth' }, { master: 1 }),
    link(3, 'wg9', other('wireguard'), { hardwareType: 65534 }),
    link(4, 'tap0', undefined, { alias: LINK_ALIAS }),
  ];
  expect(await find(links)).toEqual([]);
  expect(await find(links, [{ dst: '::/0', protocol: 9, link: 1 }])).toEqual(['docker0']);
});
