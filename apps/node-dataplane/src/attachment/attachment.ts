import { dirname, join } from 'node:path';
import type { RouteSocket } from '@unbounded/netlink';
import { createNftables } from '@unbounded/nftables';
import type { Logger, Metrics } from '@unbounded/telemetry';
import type { AgentConfig } from '../agent.config.ts';
import { checksumPinFolder, createChecksumGuard } from './checksum-guard/checksum-guard.ts';
import { listFile } from './config.ts';
import { createGonePods, livingOf } from './gone-pods.ts';
import { installCniPlugin } from './install.ts';
import { openPlanGate, type PlanGate } from './plan-gate.ts';
import { POD_BRIDGE } from './pod-bridge.ts';
import { releaseOfFormerBoot } from './reservations.ts';
import { createPodRegistry, type PodAttachment, type PodRegistry } from './pods.ts';
import { type CniServer, startCniServer } from './server.ts';
import { createSourceGuard, type SourceGuard } from './source-guard/source-guard.ts';
import type { StateFaults } from '../state/state-faults.ts';
import type { Annotations } from './hook.port.ts';
import type { SectionHook } from './hook-choice.ts';
import { type HookedPods, hookedPods } from './hooks.ts';
import { bridgePods, podPorts } from './ports.ts';

/** How pods come and go: the CNI plugin, the socket on which it finds the agent, what every pod is kept to, and sections' hooks. */
export interface Attachment {
  readonly pods: PodRegistry;
  /** Those whose port is one of the pod bridge. */
  readonly bridgePods: Pick<PodRegistry, 'list'>;
  readonly guard: SourceGuard;
  readonly gate: PlanGate;
  readonly hooks: Pick<HookedPods, 'handle' | 'problemOf'>;
  /** Detaches pods whose DEL was missed. Never rejects. */
  detachGone(): Promise<void>;
  /** Before the CNI list is written: addresses of pods of the boot before are free. Never rejects. */
  releaseOfFormerBoot(): Promise<void>;
  /** From then on pods are attached. */
  listen(): Promise<void>;
  /** No pod is attached any more; requests that have come get their answers, unless they take too long. */
  stopListening(): Promise<void>;
  close(): Promise<void>;
}

export interface AttachmentParts {
  readonly net: RouteSocket;
  readonly faults: StateFaults;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly hooks: readonly SectionHook[];
  readonly annotationsOf: (pod: PodAttachment) => Promise<Annotations>;
}

export const openAttachment = async (
  config: AgentConfig,
  { net, faults, logger, metrics, hooks, annotationsOf }: AttachmentParts,
): Promise<Attachment> => {
  const { stateDir, cniPlugin, cniBinDir, cniSocket, podsBpfObject: objectPath, bpffsDir } = config;
  const pods = createPodRegistry(join(stateDir, 'pods.json'), faults);
  installCniPlugin(cniPlugin, cniBinDir, faults);
  const linkNames = async (): Promise<ReadonlySet<string>> => new Set((await net.links.list()).map(({ name }) => name));
  const living = livingOf(pods.list(), await linkNames());
  pods.keepOnly((pod) => living.has(pod));
  const nft = createNftables();
  const onBridge = bridgePods(pods);
  const sourceGuard = createSourceGuard({ net, nft, pods: onBridge, logger, metrics });
  const pinFolder = checksumPinFolder(bpffsDir);
  const checksumGuard = createChecksumGuard({ net, objectPath, pinFolder, metrics, logger });
  const guard: SourceGuard = {
    ...sourceGuard,
    ensure: async () => [...(await sourceGuard.ensure()), ...(await checksumGuard.ensure())],
  };
  await guard.ensure(); // pods that are there already, before a plan is; a pass says what is wrong
  const gate = openPlanGate(join(dirname(cniSocket), 'plan-applied'), logger);
  const ports = podPorts(guard, pods);
  const hooked = hookedPods({ hooks, ports, registered: () => pods.list(), annotationsOf, logger });
  const detachGone = createGonePods({
    registered: () => pods.list(),
    linkNames,
    detach: (containerId, interfaceName) => hooked.detach(containerId, interfaceName),
    logger,
  });
  const isUnused = async (): Promise<boolean> => {
    if (pods.list().length > 0) return false;
    const bridge = (await net.links.list()).find(({ name }) => name === POD_BRIDGE);
    return !bridge || (await net.links.list({ master: bridge.index })).length === 0;
  };
  let server: CniServer | undefined;
  return {
    detachGone,
    releaseOfFormerBoot: () =>
      releaseOfFormerBoot({
        ...{ folder: config.cniReservationsDir, list: listFile(dirname(cniSocket)) },
        ...{ isUnused, logger },
      }),
    pods,
    bridgePods: onBridge,
    guard,
    gate,
    hooks: hooked,
    async listen() {
      server = await startCniServer(cniSocket, { pods: hooked, gate, logger });
    },
    async stopListening() {
      await server?.close();
    },
    async close() {
      await server?.close();
      nft.close();
      checksumGuard.close();
    },
  };
};
