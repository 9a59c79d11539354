import type { Severity } from '../view/types.ts';

/** States by shape, word and colour. */

const TONES: Readonly<Record<string, readonly [tone: string, shape: string]>> = {
  ...{ Healthy: ['good', '●'], Reachable: ['good', '●'], Recovering: ['warn', '◐'], New: ['unknown', '?'] },
  ...{ Degraded: ['warn', '◐'], Partial: ['warn', '◐'], Unhealthy: ['bad', '✕'], Unreachable: ['bad', '✕'] },
};

export const toneOf = (state: string): string => TONES[state]?.[0] ?? 'unknown';
export const shapeOf = (state: string): string => TONES[state]?.[1] ?? '?';

/** One of a later version is shown by its name, and looks like what is not known. */
export const StateBadge = ({ state }: { readonly state: string }) => {
  return (
    <span className={`badge ${toneOf(state)}`}>
      <span aria-hidden="true">{shapeOf(state)}</span> {state}
    </span>
  );
};

const SEVERITY: Readonly<Record<Severity, readonly [tone: string, shape: string]>> = {
  critical: ['bad', '✕'],
  warning: ['warn', '!'],
  info: ['unknown', 'i'],
};

export const SeverityBadge = ({ severity }: { readonly severity: Severity }) => {
  const [tone, shape] = SEVERITY[severity] ?? ['unknown', '?'];
  return (
    <span className={`badge ${tone}`}>
      <span aria-hidden="true">{shape}</span> {severity}
    </span>
  );
};
