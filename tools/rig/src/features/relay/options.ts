/** What a person can say about the relay, and what it means for the layout. */

/** What becomes of UDP at the sites' borders; either way there is a relay outside. */
export const BLOCK_UDP = ['all', 'none'] as const;
export type BlockUdp = (typeof BLOCK_UDP)[number];

export interface RelayOptions {
  /** off: there is no relay, and UDP passes. */
  readonly blockUdp: BlockUdp | 'off';
}

/** Options of the lab that decide whether a relay can carry its links. */
interface Joined extends RelayOptions {
  readonly topology: string;
  readonly between: string;
}

/** Only WireGuard over external addresses goes by a relay. @throws Error */
const check = ({ blockUdp, topology, between }: Joined): void => {
  if (blockUdp === 'off') {
    if (topology === 'nat')
      throw new Error('--topology nat: sites meet at a relay only; --block-udp all or none brings one along');
    return;
  }
  if (topology === 'mesh' || topology === 'internal')
    throw new Error(
      `--block-udp ${blockUdp}: with --topology ${topology} sites have no external addresses; must be pools or chain`,
    );
  if (between !== 'Auto' && between !== 'WireGuard')
    throw new Error(`--block-udp ${blockUdp}: a relay carries no ${between}; --between must be Auto or WireGuard`);
};

const defaults: RelayOptions = { blockUdp: 'off' };

export const relayOptions = { defaults, choices: { blockUdp: BLOCK_UDP }, check } as const;
