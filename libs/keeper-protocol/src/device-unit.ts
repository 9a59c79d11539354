import { createHash } from 'node:crypto';
import { z } from 'zod';
import { address, isUnique, list, prefix } from './fields.ts';
import { protocolFile } from './protocol-file.ts';

/**
 * What is asked of the keeper of tailnet devices: a file for each pod that is a device. It holds all that brings a died process back as
 * it was. The keeper can enter a pod's network namespace and trusts whoever writes the unit no further than this schema.
 */

/** Addresses of a device, one of each family. */
const MOST_ADDRESSES = 2;
const [MOST_RULES, MOST_ROUTES] = [16, 1024];

/** In the pod's network namespace. */
export const TAILNET_INTERFACE = 'ts0';

/** Of a file's name as well: no dots and no slashes. */
const podUid = z.string().regex(/^[0-9a-z][0-9a-z-]{0,63}$/, 'must be metadata.uid of a Pod');

const isHttpUrl = (text: string): boolean => {
  const url = URL.parse(text);
  return url !== null && ['http:', 'https:'].includes(url.protocol) && url.username === '' && url.password === '';
};

const familyOf = (text: string): string => (text.includes(':') ? 'IPv6' : 'IPv4');
const priority = z.int().min(1).max(32_765);
const table = z.int().min(256).max(0xff_ffff);

const network = z.object({
  /** Absent ones are taken off the interface. */
  addresses: list(address, MOST_ADDRESSES).refine(
    (addresses) => isUnique(addresses.map(familyOf)),
    'must have at most one address of each family',
  ),
  /** Packets to `to` are looked up in the table. */
  rules: list(z.object({ priority, to: prefix, table }), MOST_RULES),
  /** The whole content of these tables. */
  routes: list(
    z.object({
      table,
      to: prefix,
      kind: z.enum(['device', 'unreachable', 'throw']),
      metric: z.int().min(0).max(0xffff),
    }),
    MOST_ROUTES,
  ),
});

const schema = z.object({
  podUID: podUid,
  netns: z
    .string()
    .max(255)
    .regex(/^\/(?:var\/)?run\/netns\/\w[\w.-]*$/, 'must be a file in /run/netns or /var/run/netns'),
  /** Absent: the network alone, as long as nothing is known of the device. */
  device: z
    .object({
      hostName: z.string().regex(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/, 'must be a DNS label'),
      controlURL: z.string().max(512).refine(isHttpUrl, 'must be an http or https URL without user'),
    })
    .exactOptional(),
  network,
});

export const deviceUnit = protocolFile({
  name: 'device unit',
  schema,
  maxBytes: 1 << 18,
  remedy:
    'the keeper of tailnet devices is older than the tailnet agent: delete its pod on this node, so that it is replaced',
});
export type DeviceUnit = ReturnType<typeof deviceUnit.parse>;
export type PodNetwork = DeviceUnit['network'];

/** Of the network that a unit asks for, and where: the state names it when it stands. The order of fields does not matter. */
export const networkDigest = ({ network: wanted, netns }: DeviceUnit): string =>
  createHash('sha256')
    .update(JSON.stringify([netns, network.parse(wanted)]))
    .digest('hex')
    .slice(0, 16);
