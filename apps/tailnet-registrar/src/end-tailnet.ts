import { setTimeout as sleep } from 'node:timers/promises';

import type { Mesh, TailnetDevice } from '@unbounded/crds';
import { type ApiError, ignoreGone, isForbidden, isNotFound, type ResourceClient } from '@unbounded/kube';
import type { Logger } from '@unbounded/telemetry';

import { keyOf, REGISTERED } from './registrar-objects.ts';

/** Before the programs are uninstalled: devices go while there is a registrar, which alone can remove them. */

export interface EndTailnetOptions {
  readonly meshes: Pick<ResourceClient<Mesh>, 'listAll' | 'mergePatch'>;
  readonly devices: Pick<ResourceClient<TailnetDevice>, 'listAll'>;
  readonly timeoutMs: number;
  /** For the agents of nodes, which take the network of a device away when its record has gone. */
  readonly settleMs: number;
  readonly pollMs?: number;
  readonly logger: Logger;
}

/** There are devices left, in words. */
class DevicesLeftError extends Error {
  override readonly name = 'DevicesLeftError';
}

const DEFAULT_POLL_MS = 1000;
const MOST_NAMES = 20;

const describe = (record: TailnetDevice): string => {
  const condition = record.status?.conditions?.find(({ type }) => type === REGISTERED);
  return `${keyOf(record)}${condition ? ` (${condition.reason}: ${condition.message})` : ''}`;
};

const leftText = (left: readonly TailnetDevice[], timeoutMs: number): string => {
  const more = left.length > MOST_NAMES ? ` and ${left.length - MOST_NAMES} more` : '';
  return (
    `after ${Math.round(timeoutMs / 1000)} s ${left.length} TailnetDevices are left: ${left.slice(0, MOST_NAMES).map(describe).join(', ')}${more}; ` +
    'correct what tailnet-registrar says (its log, conditions of TailnetDevices and of the Mesh) and uninstall again; or leave the devices ' +
    'to an administrator of the tailnet, by helm uninstall --no-hooks'
  );
};

/** Without the kind there are none. */
const listOrNone = <T>(listing: Promise<readonly T[]>): Promise<readonly T[]> =>
  listing.catch((error: unknown) => {
    if (isNotFound(error)) return [];
    throw error;
  });

/** What is removed is told first: it can be given again. It names Secrets and holds none. */
const removeSettings = async ({ meshes, logger }: EndTailnetOptions): Promise<void> => {
  for (const { metadata, spec } of await listOrNone(meshes.listAll())) {
    if (spec.tailnet === undefined) continue;
    logger.info({ mesh: metadata.name, tailnet: spec.tailnet }, 'removing spec.tailnet of the Mesh');
    await meshes.mergePatch(metadata.name, { spec: { tailnet: null } }).catch(ignoreGone);
  }
};

/**
 * Removes `spec.tailnet` of all Meshes, and waits until no device is left. Somebody may give it again meanwhile: it is removed again.
 * @throws DevicesLeftError; ApiError when it may not, or the API server does not answer until the end
 */
export const endTailnet = async (options: EndTailnetOptions): Promise<void> => {
  const { devices, timeoutMs, settleMs, pollMs = DEFAULT_POLL_MS, logger } = options;
  const endMs = performance.now() + timeoutMs;
  let waitedFor = 0;
  for (;;) {
    let failed: unknown;
    let left: readonly TailnetDevice[] = [];
    try {
      await removeSettings(options);
      left = await listOrNone(devices.listAll());
    } catch (error) {
      if (isForbidden(error)) throw error;
      failed = error;
      logger.warn({ reason: (error as ApiError).message }, 'the API server was not reached; retrying');
    }
    if (failed === undefined && left.length === 0) break;
    if (left.length > 0 && left.length !== waitedFor)
      logger.info({ devices: left.length }, 'devices are being removed');
    waitedFor = left.length || waitedFor;
    if (performance.now() >= endMs) throw failed ?? new DevicesLeftError(leftText(left, timeoutMs));
    await sleep(pollMs);
  }
  if (waitedFor > 0) await sleep(settleMs);
  logger.info({}, 'no device is left');
};
