import { isNftTable, NFT_GUARD_TABLE, nftTableOf, ROUTE_PROTOCOLS, sectionAlias } from '@unbounded/config/ownership';
import type { RouteSocket } from '@unbounded/netlink';
import type { Nftables } from '@unbounded/nftables';
import { deleteAll } from '../kernel/delete-all.ts';
import { removeDevice } from '../kernel/links.ts';
import type { SectionType } from '../section.port.ts';

/** Behind it: the node's end of a pod's link. */
const POD_PORT = ':pod';

/**
 * What sections left that the agent no longer has: routes, rules and addresses by their protocol number, devices by their alias
 * (`unbounded:SECTION`; `unbounded:SECTION:pod`, a pod's port, goes with its pod or at uninstall), nftables tables by their names.
 * Their kept plans go with openKeptSections, their conditions as the other sections write theirs.
 */
export const removeUnlisted = async (
  { net, nft }: { readonly net: RouteSocket; readonly nft: Nftables },
  listed: readonly Pick<SectionType, 'name' | 'routeProtocol'>[],
  say: (line: string) => void,
): Promise<void> => {
  const protocols = new Set(listed.flatMap(({ routeProtocol }) => routeProtocol ?? []));
  const isLeft = (protocol: number | undefined): boolean =>
    protocol !== undefined &&
    protocol >= ROUTE_PROTOCOLS.first &&
    protocol <= ROUTE_PROTOCOLS.last &&
    !protocols.has(protocol);
  const rules = (await net.rules.list()).filter(({ protocol }) => isLeft(protocol));
  for (const rule of rules) {
    say(`removing rule ${rule.priority}`);
    await net.rules.delete(rule);
  }
  for (let protocol = ROUTE_PROTOCOLS.first; protocol <= ROUTE_PROTOCOLS.last; protocol++) {
    if (!isLeft(protocol)) continue;
    const routes = await net.routes.list({ protocol });
    for (const { dst } of routes) say(`removing route ${dst}`);
    await deleteAll(net.routes, routes);
  }
  for (const address of await net.addresses.list()) {
    if (!isLeft(address.protocol)) continue;
    say(`removing address ${address.address}`);
    await net.addresses.delete(address);
  }
  const isUninstall = listed.length === 0;
  const aliases = new Set(listed.flatMap(({ name }) => [sectionAlias(name), sectionAlias(name) + POD_PORT]));
  for (const link of await net.links.list()) {
    const { alias = '' } = link;
    if (!alias.startsWith(sectionAlias('')) || aliases.has(alias)) continue;
    // A pod that runs would lose it for good: no later version makes it again.
    if (alias.endsWith(POD_PORT) && !isUninstall) continue;
    say(`removing device ${link.name}`);
    await removeDevice(net, link);
  }
  const tables = new Set([NFT_GUARD_TABLE, ...listed.map(({ name }) => nftTableOf(name))]);
  for (const { family, name } of await nft.listTables()) {
    if (!isNftTable(name) || tables.has(name)) continue;
    say(`removing nftables table ${family} ${name}`);
    await nft.deleteTable(family, name);
  }
};
