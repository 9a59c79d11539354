import { type Family, PLANS } from '../../layout/addresses.ts';
import type { LabLayout, LabNode } from '../../layout/layout.ts';

/** Where the partner is, which addresses it admits, and which node can own them. */

export const PARTNER = 'partner';
/** Of an HTTP server, which answers /client with the address that it is asked from; of echoes over UDP and TCP; of a sink for streams. */
export const PARTNER_PORTS = { http: 8080, echo: 9000, sink: 9001 } as const;
/** Host numbers on the WAN, and how many bits of an address tell the admitted ones apart. */
const [PARTNER_HOST, FIRST_ADMITTED, ADMITTED_BITS] = [251, 200, 3];

export const hasPartner = ({ options }: LabLayout): boolean => options.partner;
export const partnerIps = ({ underlayFamilies }: LabLayout): string[] =>
  underlayFamilies.map((family) => PLANS[family].wanHost(PARTNER_HOST));

const admittedBlock = (family: Family): string =>
  `${PLANS[family].wanHost(FIRST_ADMITTED)}/${(family === 4 ? 32 : 128) - ADMITTED_BITS}`;
/** One of each family. */
export const admittedBlocks = ({ underlayFamilies }: LabLayout): string[] => underlayFamilies.map(admittedBlock);

/** A label that no kubelet can put on its own Node. */
export const EGRESS_LABEL = { 'node-restriction.kubernetes.io/egress': PARTNER } as const;
/** The one node that can own egress addresses: the first gateway of the first site, which stands on the WAN itself. */
export const isEligible = (layout: LabLayout, { name }: Pick<LabNode, 'name'>): boolean =>
  hasPartner(layout) && layout.sites[0]!.nodes.find(({ role }) => role === 'gateway')?.name === name;
