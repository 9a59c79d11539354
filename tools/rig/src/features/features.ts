import type { LabLayout, LabNode } from '../layout/layout.ts';
import type { Feature } from './feature.ts';
import { lan } from './lan/lan.ts';
import { partner } from './partner/partner.ts';
import { prometheus } from './prometheus/prometheus.ts';
import { redis } from './redis/redis.ts';
import { relay } from './relay/relay.ts';
import { tailnet } from './tailnet/tailnet.ts';

/** All features: one line for each. */
export const FEATURES: readonly Feature[] = [relay, partner, redis, lan, tailnet, prometheus];

/** All labels that features ask for on a node. */
export const labelsOf = (layout: LabLayout, node: LabNode): Readonly<Record<string, string>> =>
  Object.fromEntries(FEATURES.flatMap(({ labels }) => Object.entries(labels(layout, node))));
