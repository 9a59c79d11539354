import { dirname, join } from 'node:path';
import { configKey, counter } from '@unbounded/bpf-maps';
import type { RouteSocket } from '@unbounded/netlink';
import type { Logger, Metrics } from '@unbounded/telemetry';
import type { Problem } from '@unbounded/topology';
import { type Attachments, createAttachments, type Loaded } from '../../bpf/attachments.ts';
import { hasKernelFunction, KERNEL_CONTEXT } from '../../bpf/kernel-functions.ts';
import { markLayout } from '../../bpf/layout-folder.ts';
import { loadPinned } from '../../bpf/load-pinned.ts';
import type { Place } from '../../bpf/places.ts';
import { createIncreases } from '../../kernel/increases.ts';
import { POD_BRIDGE } from '../pod-bridge.ts';
import { droppedFrames } from '../source-guard/drops.ts';

/**
 * Keeps a program at the pods' bridge that drops frames which a device would rewrite on their way out, after source validation and all
 * rules have looked at them (bpf/unbounded_pods.bpf.c). From pod to pod of one node no device writes into a frame.
 */

export interface ChecksumGuard {
  /** Attaches the program where it is not, and counts what it dropped. */
  ensure(): Promise<readonly Problem[]>;
  /** What is attached stays. */
  close(): void;
}

export interface ChecksumGuardParts {
  readonly net: Pick<RouteSocket, 'links'>;
  /** The compiled program. */
  readonly objectPath: string;
  /** Of this version, in a folder of the guard's own. */
  readonly pinFolder: string;
  readonly metrics: Metrics;
  readonly logger: Logger;
  readonly hasFunction?: (name: string) => boolean;
}

const MAP = 'unbounded_pod_drops';
const MAPS = { [MAP]: { keyBytes: 4, valueBytes: 8, maxEntries: 1 } } as const;
const LAYOUT = 'drops';
const PLACE: Place = { program: 'unbounded_pod_checksum', direction: 'ingress' };

/** Beside the folder of the data path's pins: removeSectionPins takes both away. */
export const checksumPinFolder = (bpffsDir: string): string => join(dirname(bpffsDir), 'pods', 'v1');

const open = ({ objectPath, pinFolder }: ChecksumGuardParts) => {
  const loaded: Loaded = loadPinned({
    ...{ name: 'unbounded_pods', objectPath, pinFolder, maps: MAPS, fingerprint: LAYOUT },
  });
  const attachments: Attachments = createAttachments(loaded, { pinFolder, placeOf: () => PLACE });
  const drops = loaded.object.perCpuMap(MAP, configKey, counter);
  return {
    attach(index: number): void {
      const bridge = { name: POD_BRIDGE, index };
      attachments.ensure(bridge);
      if (attachments.removeOthers([bridge])) markLayout(pinFolder, LAYOUT);
    },
    dropped: (): number => (drops.get(0) ?? []).reduce((sum, count) => sum + Number(count), 0),
    close(): void {
      attachments.close();
      loaded.object.close();
    },
  };
};

export const createChecksumGuard = (parts: ChecksumGuardParts): ChecksumGuard => {
  const { net, metrics, logger, hasFunction = hasKernelFunction } = parts;
  const dropped = droppedFrames(metrics);
  const inForce = metrics.gauge({
    name: 'unbounded_pod_checksums_checked',
    help: '1: frames of pods that a device would rewrite on their way out are dropped. 0: not so, or there are no pods yet.',
  });
  dropped.inc({ reason: 'checksum' }, 0);
  inForce.set(0);
  const increases = createIncreases<string>();
  const isKnown = hasFunction(KERNEL_CONTEXT);
  if (!isKnown)
    logger.info(
      { needs: 'Linux 6.2 with CONFIG_DEBUG_INFO_BTF' },
      'frames of pods are not checked for rewriting: pods with NET_RAW can get past source validation towards other nodes',
    );
  let opened: ReturnType<typeof open> | undefined;
  const close = (): void => {
    opened?.close();
    opened = undefined;
  };
  return {
    async ensure() {
      const bridge = isKnown ? await net.links.get(POD_BRIDGE) : undefined;
      if (!bridge) {
        inForce.set(0);
        return [];
      }
      try {
        opened ??= open(parts);
        opened.attach(bridge.index);
        dropped.inc({ reason: 'checksum' }, increases.of(MAP, opened.dropped()));
        inForce.set(1);
        return [];
      } catch (error) {
        close();
        inForce.set(0);
        const message = `device ${POD_BRIDGE}: ${(error as Error).message}: pods with NET_RAW can get past source validation towards other nodes; the agent tries again`;
        return [{ reason: 'PodChecksumsUnchecked', message }];
      }
    },
    close,
  };
};
