import { createHash } from 'node:crypto';
import { sectionAlias } from '@unbounded/config/ownership';

/** What the section's things in the kernel are called. */

export const L2_SECTION = 'l2';
export const L2_ALIAS = sectionAlias(L2_SECTION);
/** Of the node's end of a pod's link: it goes with its pod, whatever becomes of the section. */
export const L2_PORT_ALIAS = `${L2_ALIAS}:pod`;

export const PORT_PREFIX = 'l2p';
/** IFNAMSIZ less the zero at the end. */
const NAME_LENGTH = 15;

/**
 * The node's end of the link of an endpoint: by its key the port is found again, whoever made it.
 * @param endpoint NAMESPACE/NAME of the NetworkEndpoint
 */
export const portName = (endpoint: string): string =>
  (PORT_PREFIX + createHash('sha256').update(endpoint).digest('hex')).slice(0, NAME_LENGTH);

export const isPortName = (device: string): boolean => device.length === NAME_LENGTH && device.startsWith(PORT_PREFIX);

/** Of the NetworkEndpoint of a pod's interface. */
export const endpointName = (pod: string, device: string): string => `${pod}.${device}`;

/** NAMESPACE/NAME of it. */
export const endpointKeyOf = (pod: { readonly namespace: string; readonly name: string }, device: string): string =>
  `${pod.namespace}/${endpointName(pod.name, device)}`;
