import { GROUP_VERSION } from '@unbounded/crds';
import { PARTNER } from './layout.ts';

/** The rule of docs/examples/static-egress.yaml, for who has no kubectl to apply it. */
export const EXAMPLE_RULE = {
  apiVersion: GROUP_VERSION,
  kind: 'StaticEgressIP',
  metadata: { name: PARTNER },
  spec: { rules: [{ podSelector: { matchLabels: { probe: 'probe-a' } }, pool: PARTNER }] },
} as const;
