import { DEVICES, EGRESS_ROUTE_PROTOCOL, LINK_ALIAS, nftTableOf } from '@unbounded/config/ownership';
import type { Link } from '@unbounded/netlink';
import { removeDevice } from '../../kernel/links.ts';
import type { SectionContext } from '../../section.port.ts';
import { deleteAll } from '../../kernel/delete-all.ts';
import { listRules } from '../../kernel/routing-rules.ts';

/** What egress has in the kernel, whoever of its agents made it. Addresses besides go with the plan (addresses.ts). */

type Kernel = Pick<SectionContext, 'net' | 'nft'>;

const deviceOf = async ({ net }: Kernel): Promise<Link | undefined> => {
  const link = await net.links.get(DEVICES.egress);
  return link?.alias?.startsWith(`${LINK_ALIAS}:`) ? link : undefined;
};

const tablesOf = async ({ nft }: Kernel) =>
  (await nft.listTables()).filter(({ name }) => name === nftTableOf('egress'));

/** Others take away single kinds of it, all tables of nftables for example: any one that is there counts. */
export const isInKernel = async (kernel: Kernel): Promise<boolean> => {
  const { net } = kernel;
  return (
    (await tablesOf(kernel)).length > 0 ||
    (await deviceOf(kernel)) !== undefined ||
    (await listRules(net, EGRESS_ROUTE_PROTOCOL)).length > 0 ||
    (await net.addresses.list()).some(({ protocol }) => protocol === EGRESS_ROUTE_PROTOCOL) ||
    (await net.routes.list({ protocol: EGRESS_ROUTE_PROTOCOL })).length > 0
  );
};

/** Rules first: what they lead to goes after them. @throws NetlinkError, NftablesError: what is behind it is there still */
export const removeTraces = async (kernel: Kernel): Promise<void> => {
  const { net, nft } = kernel;
  await deleteAll(net.rules, await listRules(net, EGRESS_ROUTE_PROTOCOL));
  for (const { family, name } of await tablesOf(kernel)) await nft.deleteTable(family, name);
  await deleteAll(net.routes, await net.routes.list({ protocol: EGRESS_ROUTE_PROTOCOL }));
  const link = await deviceOf(kernel);
  if (link) await removeDevice(net, link);
};
