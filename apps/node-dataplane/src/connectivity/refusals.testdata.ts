import { createNftables } from '@unbounded/nftables';
import type { Dataplane } from './dataplane.ts';
import { openConnectivityTable } from './kernel/firewall.testdata.ts';

/** Kernels that refuse what a pass asks for. */

/** The kernel takes no setting of a device but up and down. */
export const withoutSettings = (dataplane: Dataplane): Dataplane => {
  const { net } = dataplane;
  const modify: typeof net.links.modify = async (link, settings) => {
    if (settings.up === undefined) throw new Error('EBUSY');
    await net.links.modify(link, settings);
  };
  return { ...dataplane, net: Object.create(net, { links: { value: { ...net.links, modify } } }) as typeof net };
};

/** The kernel refuses every new table. */
export const withoutWriting = (dataplane: Dataplane): Dataplane => ({
  ...dataplane,
  table: openConnectivityTable({
    nft: { ...createNftables(), replaceTable: async () => Promise.reject(new Error('EOPNOTSUPP')) },
    logger: dataplane.logger,
  }),
});
