import { DEFAULTS, flagOf, IMPAIRMENTS, type LabOptions } from './options.ts';

/** What a lab stands on, as far as its layout goes. What it does is in substrate/. */

export type SubstrateName = 'cluster' | 'bare';

/** The one place where `--fabric` decides: everything else looks its substrate up by this name. */
export const substrateName = ({ fabric }: Pick<LabOptions, 'fabric'>): SubstrateName => (fabric ? 'bare' : 'cluster');

interface SubstrateLayout {
  /** Whether the first site has a node for the control plane. */
  readonly hasControlPlane: boolean;
  /** @throws Error for options that this substrate does not have */
  readonly check: (options: LabOptions) => void;
}

const checkCluster = (options: LabOptions): void => {
  const only = (['underlay', ...IMPAIRMENTS] as const).find((name) => options[name] !== DEFAULTS[name]);
  if (only) throw new Error(`${flagOf(only)} ${options[only]}: only --fabric has it`);
};

const checkBare = (options: LabOptions): void => {
  if (options.agents === 'pods')
    throw new Error('--agents pods: with --fabric there is no Kubernetes to run them; must be process');
  if (options.redis) throw new Error('--redis: with --fabric there is no status aggregator; must be left out');
  if (options.lan) throw new Error('--lan: with --fabric there is no controller of Networks; must be left out');
  if (options.tailnet) throw new Error('--tailnet: with --fabric there is no registrar; must be left out');
  if (options.prometheus)
    throw new Error('--prometheus: with --fabric there is no node of a control plane; must be left out');
  if (options.gateways + options.workers === 0)
    throw new Error('--gateways 0 --workers 0: with --fabric there is no node then');
  if (options.reorderPercent > 0 && options.delayMs === 0)
    throw new Error(
      `--reorder-percent ${options.reorderPercent}: only delayed packets are overtaken; give --delay-ms too`,
    );
};

const LAYOUTS: Readonly<Record<SubstrateName, SubstrateLayout>> = {
  cluster: { hasControlPlane: true, check: checkCluster },
  bare: { hasControlPlane: false, check: checkBare },
};

export const substrateLayout = (options: LabOptions): SubstrateLayout => LAYOUTS[substrateName(options)];
