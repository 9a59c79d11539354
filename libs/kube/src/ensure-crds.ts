import { setTimeout as sleep } from 'node:timers/promises';

import { type KindDefinition, toCustomResourceDefinition } from '@unbounded/crds';

import type { ResourceClient } from './client.ts';
import type { Crd } from './objects.ts';

const FIELD_MANAGER = 'unbounded-crds';
const POLL_MS = 100;

const isEstablished = ({ status }: Crd): boolean =>
  status?.conditions?.some(({ type, status: value }) => type === 'Established' && value === 'True') ?? false;

/** Installs or upgrades the kinds and waits until the API server serves them. @throws Error after `timeoutMs` */
export const ensureCrds = async (
  crds: ResourceClient<Crd>,
  definitions: readonly KindDefinition[],
  { timeoutMs = 30_000 }: { readonly timeoutMs?: number } = {},
): Promise<void> => {
  const signal = AbortSignal.timeout(timeoutMs);
  const wanted = definitions.map(toCustomResourceDefinition);
  for (const crd of wanted) await crds.apply(crd, { fieldManager: FIELD_MANAGER, force: true, signal });
  for (const { metadata } of wanted) {
    while (!isEstablished(await crds.get(metadata.name, { signal }))) {
      signal.throwIfAborted();
      await sleep(POLL_MS);
    }
  }
};
