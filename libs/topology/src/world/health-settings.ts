import type { Problem } from './problem.ts';

/** How often a link is probed and how many lost probes make it unhealthy, as the objects say. */
export interface HealthSettings {
  /** false: the link is not probed, and its peer counts as healthy. */
  readonly enabled: boolean;
  readonly intervalMs: number;
  /** 1..255. */
  readonly detectMultiplier: number;
}

/** What an object's `healthCheckSettings` may hold. */
export interface HealthSpec {
  readonly enabled?: boolean | undefined;
  readonly detectMultiplier?: number | undefined;
  readonly receiveInterval?: number | string | undefined;
  readonly transmitInterval?: number | string | undefined;
}

export const DEFAULT_HEALTH: HealthSettings = { enabled: true, intervalMs: 1000, detectMultiplier: 3 };

/** Milliseconds: faster is noise of the timers, slower is no detection. */
const INTERVAL_MS = { least: 10, most: 60_000 } as const;

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

/** Milliseconds of an IntOrString: a number or its text is milliseconds, else a Go duration like "1m30s"; undefined: neither. */
export const parseIntervalMs = (value: number | string): number | undefined => {
  if (typeof value === 'number') return Number.isFinite(value) && value > 0 ? value : undefined;
  if (/^\d{1,10}$/.test(value)) return parseIntervalMs(Number(value));
  if (!/^(\d{1,8}(\.\d{1,6})?(ms|s|m|h))+$/.test(value)) return undefined;
  const parts = [...value.matchAll(/([\d.]+)(ms|s|m|h)/g)];
  return parseIntervalMs(parts.reduce((sum, [, count, unit]) => sum + Number(count) * UNIT_MS[unit!]!, 0));
};

const clamp = (value: number, least: number, most: number): number => Math.min(Math.max(value, least), most);

/** The settings of an object; a value that is none is told and counts as not set. Undefined: the object says nothing. */
export const parseHealth = (
  where: string,
  spec: HealthSpec | undefined,
  problems: Problem[],
): HealthSettings | undefined => {
  if (spec === undefined) return undefined;
  const interval = (field: 'receiveInterval' | 'transmitInterval'): number => {
    const value = spec[field] ?? DEFAULT_HEALTH.intervalMs;
    const ms = parseIntervalMs(value);
    if (ms !== undefined) return ms;
    problems.push({
      reason: 'InvalidInterval',
      message: `${where} spec.healthCheckSettings.${field}: ${JSON.stringify(value)} is no interval: write milliseconds like 300, or a duration like "300ms" or "1.5s"; ${DEFAULT_HEALTH.intervalMs} ms is used`,
    });
    return DEFAULT_HEALTH.intervalMs;
  };
  const slower = Math.max(interval('transmitInterval'), interval('receiveInterval'));
  return {
    enabled: spec.enabled !== false,
    intervalMs: clamp(Math.round(slower), INTERVAL_MS.least, INTERVAL_MS.most),
    detectMultiplier: clamp(Math.trunc(spec.detectMultiplier ?? DEFAULT_HEALTH.detectMultiplier), 1, 255),
  };
};
