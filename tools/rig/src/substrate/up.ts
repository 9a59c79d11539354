import { CURRENT, type Installation } from '../apps/chart.ts';
import type { LabLayout } from '../layout/layout.ts';
import { substrateOf } from './substrates.ts';

/** Brings the lab up, or completes one that is half up. In a lab of pods something else than the checkout may be installed. */
export const up = (layout: LabLayout, installation: Installation = CURRENT): Promise<void> =>
  substrateOf(layout).up(layout, installation);
