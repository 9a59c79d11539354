import { silentLogger as logger } from '@unbounded/telemetry';
import { expect } from 'vitest';
import { ensureAddresses } from './addresses.ts';
import { ADDRESSES, type EgressNetwork } from './egress-network.testdata.ts';
import { owns } from './egress-plans.testdata.ts';
import { createFence } from './fence.ts';
import { createEgressKernel } from './kernel/egress-kernel.ts';
import { ALWAYS } from './ownership.ts';
import type { EgressPlan } from './plan/egress-plan.ts';

/** Plans in force at the nodes of egress-network.testdata.ts, without a section. */

type NodeName = 'worker' | 'gateway';
type EgressHost = 'first' | 'second';

export const applyPlan = async (network: EgressNetwork, node: NodeName, plan: EgressPlan): Promise<void> => {
  const outcome = await createEgressKernel(network.nodes[node]).apply(plan);
  expect(outcome).toEqual({ problems: [], isInForce: true });
};

/** The addresses are on the node's device, and the fence lets them pass. */
export const holdAddresses = async (
  network: EgressNetwork,
  node: NodeName,
  hosts: readonly EgressHost[],
): Promise<void> => {
  const { net, table } = network.nodes[node];
  const addresses = hosts.flatMap((host) => ADDRESSES[host]);
  await ensureAddresses(net, owns(...hosts), new Set(), { stateOf: () => 'free' });
  const fence = createFence({ table, ownership: ALWAYS, logger, holdMs: 60_000 });
  expect(await fence.hold(new Set(addresses), performance.now())).toEqual(new Map());
  fence.stop();
};

export const giveUpAddresses = (network: EgressNetwork, node: NodeName, hosts: readonly EgressHost[]): void => {
  const lines = hosts.flatMap((host) =>
    ADDRESSES[host].map((address, index) => `addr del ${address}/${index === 0 ? 32 : 128} dev eth0\n`),
  );
  network.input(node, ['sh', '-c', 'ip -force -batch - 2>/dev/null || true'], lines.join(''));
};
