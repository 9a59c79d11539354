/** Whether the test pods of all sites join one LAN. */

export interface LanOptions {
  /** A Network over all sites, on which every test pod has a second interface. */
  readonly lan: boolean;
}

interface Carried extends LanOptions {
  readonly protocol: string;
  readonly between: string;
}

/** @throws Error for links that carry no IPv6, in which frames travel, over the IPv4 that nodes of the lab have */
const check = ({ lan, protocol, between }: Carried): void => {
  const wrong = lan ? [protocol, between].find((name) => name === 'IPIP') : undefined;
  if (wrong !== undefined)
    throw new Error(`--lan: with ${wrong} no frame travels between nodes; must be another protocol`);
};

const defaults: LanOptions = { lan: false };

export const lanOptions = { defaults, choices: {}, check } as const;
