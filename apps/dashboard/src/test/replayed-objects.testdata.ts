import { type ApiServer, nodeObject, poolObject, publicKeyFor, siteObject } from '@unbounded/testing';
import { AT_ONCE, someAtOnce } from './some-at-once.testdata.ts';
import type { ReplayedSite } from './reports.testdata.ts';

const SITE_LABEL = 'net.unbounded-cloud.io/site';
const OURS = '/apis/net.unbounded-cloud.io/v1alpha1';

/** Nodes with their sites, and pools with their gateways, as the controllers of the product leave them. */
export const createObjects = async (api: ApiServer, sites: readonly ReplayedSite[]): Promise<void> => {
  const send = (method: 'POST' | 'PATCH', path: string, body: object) =>
    api.cluster.transport.send({
      ...{ method, path, body },
      ...(method === 'PATCH' ? { contentType: 'application/merge-patch+json' } : {}),
    });
  await someAtOnce(sites, AT_ONCE, async ({ name, workers, gateways }) => {
    await send('POST', `${OURS}/sites`, siteObject(name));
    for (const node of [...workers, ...gateways])
      await send('POST', '/api/v1/nodes', nodeObject({ name: node, labels: { [SITE_LABEL]: name } }));
    await send('POST', `${OURS}/gatewaypools`, poolObject(`${name}-gateways`));
    const status = {
      nodes: gateways.map((gateway) => ({ name: gateway, wireGuardPublicKey: publicKeyFor(gateway) })),
      connectedSites: [name],
    };
    await send('PATCH', `${OURS}/gatewaypools/${name}-gateways/status`, { status });
  });
};
