import { type PartnerOptions, partnerOptions } from './partner/options.ts';
import { type RelayOptions, relayOptions } from './relay/options.ts';

/** The options that features add to `tools/lab up`: one line for each feature in each of these. */

export type FeatureOptions = RelayOptions & PartnerOptions;
export const FEATURE_DEFAULTS: FeatureOptions = { ...relayOptions.defaults, ...partnerOptions.defaults };
export const FEATURE_CHOICES = { ...relayOptions.choices, ...partnerOptions.choices } as const;
/** Each throws an Error for what the feature cannot do. */
export const FEATURE_CHECKS = [relayOptions.check, partnerOptions.check] as const;
