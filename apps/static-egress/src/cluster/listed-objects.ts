import type { EgressObjects } from './egress-objects.ts';

type Lists = { readonly [Name in keyof EgressObjects]: { list(): EgressObjects[Name] } };

/** What the caches hold now. */
export const listObjects = (caches: Lists): EgressObjects => ({
  rules: caches.rules.list(),
  clusterRules: caches.clusterRules.list(),
  pools: caches.pools.list(),
  slices: caches.slices.list(),
  nodes: caches.nodes.list(),
  pods: caches.pods.list(),
  services: caches.services.list(),
  namespaces: caches.namespaces.list(),
  sites: caches.sites.list(),
});
