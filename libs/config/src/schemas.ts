import { type Prefix, tryParsePrefix } from '@unbounded/ip';
import { z } from 'zod';

import { option } from './config.ts';

const numeric = (text: string): number => (/^-?[0-9]+$/.test(text) ? Number(text) : Number.NaN);

/** An integer within limits. */
export const whole = (range: { readonly min: number; readonly max: number }, defaultValue: number): z.ZodType<number> =>
  z
    .string()
    .optional()
    .transform((text) => (text === undefined ? defaultValue : numeric(text)))
    .refine(
      (value) => value >= range.min && value <= range.max,
      `must be an integer from ${range.min} to ${range.max}`,
    );

export const port = (defaultValue: number): z.ZodType<number> => whole({ min: 0, max: 65_535 }, defaultValue);

export const flag = (defaultValue: boolean): z.ZodType<boolean> =>
  z
    .enum(['true', 'false'], 'must be true or false')
    .optional()
    .transform((text) => (text === undefined ? defaultValue : text === 'true'));

export const choice = <const V extends string>(values: readonly V[], defaultValue: V): z.ZodType<V> =>
  z
    .enum(values, `must be one of ${values.join(', ')}`)
    .optional()
    .transform((text) => text ?? defaultValue);

export const text = (defaultValue: string): z.ZodType<string> =>
  z
    .string()
    .min(1, 'must not be empty')
    .optional()
    .transform((given) => given ?? defaultValue);

/** Text that must not be empty: the setting's, else that of a variable of the process, as a pod spec gives it. */
export const textOr = (variable: string): z.ZodType<string> =>
  z
    .string()
    .optional()
    .transform((given) => given ?? process.env[variable] ?? '')
    .refine((value) => value !== '', `must be given, or ${variable} be set`);

const VALID_BLOCKS =
  'must be blocks like 10.96.0.0/12 or fd00:10:96::/112, comma-separated, without bits after their length';

/** Blocks, comma-separated; none when it is not set. One that is none is refused: what was meant would not be heeded. */
export const blocks: z.ZodType<readonly Prefix[]> = z
  .string()
  .optional()
  .transform((given, context) => {
    const texts = given === undefined ? [] : given.split(',').map((text) => text.trim());
    const prefixes = texts.map(tryParsePrefix);
    const wrong = texts.filter((_, index) => prefixes[index] === undefined);
    if (wrong.length === 0) return prefixes as Prefix[];
    const reason = `${wrong.map((text) => `"${text}"`).join(', ')} ${wrong.length === 1 ? 'is no block' : 'are no blocks'}`;
    context.issues.push({ code: 'custom', message: `${reason}: ${VALID_BLOCKS}`, input: given });
    return z.NEVER;
  });

/** May stay unset. */
export const path: z.ZodType<string | undefined> = z.string().min(1, 'must not be empty').optional();

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

/** `250ms`, `15s`, `5m`, `1h`; the value is milliseconds. */
export const duration = (defaultValue: string): z.ZodType<number> =>
  z
    .string()
    .optional()
    .transform((given) => {
      const [, amount, unit] = /^([0-9]+)(ms|s|m|h)$/.exec(given ?? defaultValue) ?? [];
      return amount !== undefined && unit !== undefined ? Number(amount) * UNITS[unit]! : Number.NaN;
    })
    .refine((value) => !Number.isNaN(value), 'must be a duration like 250ms, 15s, 5m or 1h');

/** Where metrics are served besides loopback; the pod's environment names the node's address. */
export const healthAddress = option(
  path,
  'Addresses of /metrics besides 127.0.0.1, where /healthz and /readyz are too, comma-separated; 0.0.0.0 or :: for all.',
);

/** What every program of the control plane can be told. */
export const controlPlaneOptions = {
  kubeconfig: option(path, 'Cluster to work on; not set: KUBECONFIG, else the service account of the pod.'),
  healthPort: option(port(9999), 'TCP port of /healthz, /readyz and /metrics; 0 takes a free one.'),
  healthAddress,
  leaderElect: option(flag(true), 'Work only while holding the Lease, so that two replicas can run.'),
  leaseNamespace: option(text('unbounded-system'), 'Namespace of the Lease.'),
  leaseDuration: option(duration('15s'), 'Time after which a leader that does not renew the Lease is replaced.'),
  logLevel: option(choice(['trace', 'debug', 'info', 'warn', 'error'], 'info'), 'Lowest level that is logged.'),
} as const;
