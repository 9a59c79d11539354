import { existsSync } from 'node:fs';
import type { Server } from 'node:net';
import { dirname, join } from 'node:path';
import type { RouteSocket } from '@unbounded/netlink';
import { createNftables } from '@unbounded/nftables';
import type { Logger, Metrics } from '@unbounded/telemetry';
import type { AgentConfig } from '../agent.config.ts';
import { installCniPlugin } from './install.ts';
import { openPlanGate, type PlanGate } from './plan-gate.ts';
import { createPodRegistry, type PodRegistry } from './pods.ts';
import { startCniServer } from './server.ts';
import { createSourceGuard, type SourceGuard } from './source-guard/source-guard.ts';
import type { StateFaults } from '../state/state-faults.ts';
import { type AttachmentHook, hookedPods } from './hooks.ts';

/** How pods come and go: the CNI plug-in, the socket on which it finds the agent, what every pod is kept to, and sections' hooks. */
export interface Attachment {
  readonly pods: PodRegistry;
  readonly guard: SourceGuard;
  readonly gate: PlanGate;
  /** @returns takes the hook away again */
  addHook(hook: AttachmentHook): () => void;
  /** From then on pods are attached: all sections that must not miss one have their hooks. */
  listen(): Promise<void>;
  close(): Promise<void>;
}

export interface AttachmentParts {
  readonly net: RouteSocket;
  readonly faults: StateFaults;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

export const openAttachment = async (
  { stateFolder, cniPlugin, cniBinFolder, cniSocket }: AgentConfig,
  { net, faults, logger, metrics }: AttachmentParts,
): Promise<Attachment> => {
  const pods = createPodRegistry(join(stateFolder, 'pods.json'), faults);
  installCniPlugin(cniPlugin, cniBinFolder, faults);
  pods.keepOnly(({ netns }) => existsSync(netns));
  const nft = createNftables();
  const guard = createSourceGuard({ net, nft, pods, logger, metrics });
  await guard.ensure(); // pods that are there already, before a plan is; a pass says what is wrong
  const gate = openPlanGate(join(dirname(cniSocket), 'plan-applied'), logger);
  const hooked = hookedPods(guard, { registered: () => pods.list(), logger });
  let server: Server | undefined;
  return {
    pods,
    guard,
    gate,
    addHook: (hook) => hooked.addHook(hook),
    async listen() {
      server = await startCniServer(cniSocket, { pods: hooked, gate, logger });
    },
    async close() {
      await new Promise((resolve) => (server ? server.close(resolve) : resolve(undefined)));
      nft.close();
    },
  };
};
