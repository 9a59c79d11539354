import { GROUP_VERSION, MESH_NAME, podAnnotations } from '@unbounded/crds';
import type { LabLayout } from '../../layout/layout.ts';
import { type Feature, NOTHING } from '../feature.ts';
import { lanChecks } from './checks.ts';

/** One LAN over all sites, on which the test pods have a second interface. */

const LAN = 'lan';
/** Of its own: what pods have besides does not matter to it. */
const PREFIXES = ['192.168.77.0/24', 'fd77::/64'];
/** Of nodes (README of apps/l2-networks). */
const LOCATORS = 'fd53::/40';

const hasLan = ({ options }: LabLayout): boolean => options.lan;

const object = (kind: string, name: string, spec: object): object => ({
  ...{ apiVersion: GROUP_VERSION, kind, metadata: { name } },
  spec,
});

/** On pods that join it. */
export const lanAnnotations = (layout: LabLayout): Readonly<Record<string, string>> =>
  hasLan(layout) ? { [podAnnotations.networks]: LAN } : {};

export const lan: Feature = {
  ...NOTHING,
  manifests: (layout) =>
    hasLan(layout)
      ? [
          object('Mesh', MESH_NAME, { l2: { locatorPrefix: LOCATORS } }),
          object('Network', LAN, { prefixes: PREFIXES, namespaceSelector: {}, multicast: 'Replicate' }),
        ]
      : [],
  checks: (ground) => (hasLan(ground.layout) ? lanChecks(ground) : Promise.resolve([])),
};
