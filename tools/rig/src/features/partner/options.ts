/** What a person can say about the partner, and what it means for the layout. */

export interface PartnerOptions {
  /** Whether beyond the sites there is a server that admits listed addresses alone. */
  readonly partner: boolean;
}

/** Options of the lab that decide whether a gateway of the first site can own an address on the WAN. */
interface Attached extends PartnerOptions {
  readonly topology: string;
  readonly gateways: number;
  readonly underlay: string;
}

/** Only a gateway with an interface of its own on the WAN answers there for further addresses. @throws Error */
const check = ({ partner, topology, gateways, underlay }: Attached): void => {
  if (!partner) return;
  if (topology !== 'pools' && topology !== 'chain')
    throw new Error(`--partner: with --topology ${topology} no gateway stands on the WAN; must be pools or chain`);
  if (gateways === 0) throw new Error('--partner: with --gateways 0 nobody owns an egress address; must be at least 1');
  if (underlay !== 'same')
    throw new Error(`--partner: with --underlay ${underlay} pods may lack its addresses’ family; must be same`);
};

const defaults: PartnerOptions = { partner: false };

export const partnerOptions = { defaults, choices: {}, check } as const;
