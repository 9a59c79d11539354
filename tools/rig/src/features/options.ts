import { type LanOptions, lanOptions } from './lan/options.ts';
import { type PartnerOptions, partnerOptions } from './partner/options.ts';
import { type PrometheusOptions, prometheusOptions } from './prometheus/options.ts';
import { type RedisOptions, redisOptions } from './redis/options.ts';
import { type RelayOptions, relayOptions } from './relay/options.ts';
import { type TailnetOptions, tailnetOptions } from './tailnet/options.ts';

/** The options that features add to `tools/lab up`: one line for each feature in each of these. */

export type FeatureOptions = RelayOptions &
  PartnerOptions &
  RedisOptions &
  LanOptions &
  TailnetOptions &
  PrometheusOptions;
export const FEATURE_DEFAULTS: FeatureOptions = {
  ...relayOptions.defaults,
  ...partnerOptions.defaults,
  ...redisOptions.defaults,
  ...lanOptions.defaults,
  ...tailnetOptions.defaults,
  ...prometheusOptions.defaults,
};
export const FEATURE_CHOICES = {
  ...relayOptions.choices,
  ...partnerOptions.choices,
  ...redisOptions.choices,
  ...lanOptions.choices,
  ...tailnetOptions.choices,
  ...prometheusOptions.choices,
} as const;
/** Each throws an Error for what the feature cannot do. */
export const FEATURE_CHECKS = [
  relayOptions.check,
  partnerOptions.check,
  redisOptions.check,
  lanOptions.check,
  tailnetOptions.check,
  prometheusOptions.check,
] as const;
