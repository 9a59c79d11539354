import type { Feature } from './feature.ts';
import { relay } from './relay/relay.ts';

/** All features: one line for each. */
export const FEATURES: readonly Feature[] = [relay];
