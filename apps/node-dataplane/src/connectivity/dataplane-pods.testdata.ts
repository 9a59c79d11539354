import type { KernelPlan } from '../data-path/kernel-plan.ts';
import { run } from './attached-programs.testdata.ts';
import type { PodAttachment } from '../attachment/pods.ts';
import { applyPlan, type Dataplane } from './dataplane.ts';

/** What befalls the bridge of running pods (dataplane.scenario.ts). */

export interface PodsReport {
  readonly atFirst: boolean;
  readonly steps: Readonly<Record<string, { readonly reasons: readonly string[]; readonly isReached: boolean }>>;
  /** Of a bridge without ports, when the plan has none. */
  readonly unused: { readonly reasons: readonly string[]; readonly isBridgeGone: boolean };
}

const POD = '100.65.30.7';

/** A pod behind the bridge, in a network namespace of its own, as the bridge plugin makes it. */
const makePod = (): readonly PodAttachment[] => {
  run('ip', 'netns', 'add', 'pod');
  run('ip', 'link', 'add', 'veth7', 'type', 'veth', 'peer', 'name', 'eth0', 'netns', 'pod');
  run('ip', 'link', 'set', 'veth7', 'master', 'cbr0', 'up');
  run('ip', '-n', 'pod', 'addr', 'add', `${POD}/24`, 'dev', 'eth0');
  run('ip', '-n', 'pod', 'link', 'set', 'eth0', 'up');
  run('ip', '-n', 'pod', 'route', 'add', 'default', 'via', '100.65.30.1');
  const known = { namespace: 'default', name: 'web', uid: 'u', containerId: 'c', interface: 'eth0' };
  return [{ ...known, netns: '/run/netns/pod', hostVeth: 'veth7', addresses: [`${POD}/24`] }];
};

const isReached = (): boolean => {
  try {
    run('ping', '-c', '1', '-W', '2', '-i', '0.2', POD);
    return true;
  } catch {
    return false;
  }
};

/** What befalls the bridge of a pod, and the state after one pass. */
export const tryPods = async (
  dataplane: Dataplane,
  plan: KernelPlan,
  register: (pods: readonly PodAttachment[]) => void,
): Promise<PodsReport> => {
  const reasonsAfter = async (applied: KernelPlan): Promise<string[]> =>
    (await applyPlan(dataplane, applied)).problems
      .map(({ reason }) => reason)
      .filter((reason) => reason !== 'PeersUnhealthy'); // nobody answers here, which shows after a while
  register(makePod());
  const atFirst = isReached();
  const steps: Record<string, { reasons: string[]; isReached: boolean }> = {};
  const step = async (name: string, applied: KernelPlan): Promise<void> => {
    steps[name] = { reasons: await reasonsAfter(applied), isReached: isReached() };
  };
  run('ip', 'link', 'del', 'cbr0');
  await step('the bridge was deleted', plan);
  run('ip', 'link', 'set', 'veth7', 'nomaster');
  await step('the port was detached', plan);
  await step('manageCniPlugin is false', { ...plan, manageCni: false });
  await step('manageCniPlugin is true again', plan);
  run('ip', 'link', 'add', 'other0', 'type', 'bridge');
  run('ip', 'link', 'set', 'veth7', 'master', 'other0');
  await step('the port is at another bridge', plan);
  run('ip', 'link', 'del', 'other0');
  run('ip', 'link', 'del', 'veth7');
  await step('the interface is gone', plan);
  run('ip', 'netns', 'del', 'pod');
  await step('the pod is gone', plan);
  const reasons = await reasonsAfter({ ...plan, manageCni: false });
  const isBridgeGone = !run('ip', '-br', 'link').includes('cbr0');
  await applyPlan(dataplane, plan);
  register([]);
  return { atFirst, steps, unused: { reasons, isBridgeGone } };
};
