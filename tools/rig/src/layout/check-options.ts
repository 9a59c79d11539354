import { FEATURE_CHECKS } from '../features/options.ts';
import { bounds, flagOf, type LabOptions } from './options.ts';
import { substrateLayout } from './substrate.ts';

/** @throws Error that names the option and its bounds */
export const checkOptions = (options: LabOptions): LabOptions => {
  for (const [name, [low, high]] of Object.entries(bounds)) {
    const value = options[name as keyof typeof bounds];
    if (!Number.isInteger(value) || value < low || value > high) {
      throw new Error(`${flagOf(name as keyof typeof bounds)} ${value}: must be an integer from ${low} to ${high}`);
    }
  }
  if (options.sites > 1 && options.gateways < 1 && options.topology !== 'mesh')
    throw new Error('--gateways 0: sites that are to be joined need at least 1');
  substrateLayout(options).check(options);
  for (const check of FEATURE_CHECKS) check(options);
  return options;
};
