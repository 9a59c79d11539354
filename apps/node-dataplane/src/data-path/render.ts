import type { NodePlan } from '@unbounded/topology';
import { renderEbpf } from './ebpf/render.plan.ts';
import type { DataPathKind, KernelPlan, Rendering } from './kernel-plan.ts';
import { renderNetlink } from './netlink/render.plan.ts';

const RENDERERS: Readonly<Record<DataPathKind, (plan: NodePlan) => Rendering>> = {
  ebpf: renderEbpf,
  netlink: renderNetlink,
};

/** What the kernel is to hold for a plan, by a data path. */
export const renderPlan = (kind: DataPathKind, plan: NodePlan): KernelPlan => {
  const { tunnels: _, groups: __, blocks: ___, contained: ____, direct: _____, ...rest } = plan;
  return { ...rest, ...RENDERERS[kind](plan) };
};
