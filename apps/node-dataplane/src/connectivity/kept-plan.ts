import type { NodePlan } from '@unbounded/topology';
import { planOfRendered } from '../data-path/former-plan.ts';
import type { DataPathKind, KernelPlan } from '../data-path/kernel-plan.ts';
import { renderPlan } from '../data-path/render.ts';
import type { KeptSection } from '../section.port.ts';

/**
 * The last good plan in a file that the previous version of the agent reads too: what it knows, the rendered plan, stands beside the
 * sections.
 */
export type KeptPlan = KernelPlan & {
  readonly sections?: { readonly connectivity?: { readonly version: number; readonly plan: NodePlan } };
};

/** Of the connectivity section. A later one may have fields that change the meaning of those that are known. */
const VERSION = 1;

const has = (value: unknown, ...names: readonly string[]): boolean =>
  typeof value === 'object' && value !== null && names.every((name) => name in value);

const isKeptPlan = (value: unknown): value is KeptPlan => {
  if (!has(value, 'node', 'endpoints', 'probes')) return false;
  const connectivity = (value as KeptPlan).sections?.connectivity;
  return connectivity === undefined || has(connectivity.plan, 'node', 'blocks', 'probes');
};

/** Where the last good plan is kept. */
export interface PlanStore {
  read(): KeptPlan | undefined;
  write(plan: KeptPlan): void;
}

export const planStore = (kept: KeptSection): PlanStore => ({
  read() {
    const connectivity = kept.read();
    const value: unknown = { ...kept.former(), ...(connectivity && { sections: { connectivity } }) };
    return isKeptPlan(value) ? value : undefined;
  },
  write({ sections, ...former }) {
    if (sections?.connectivity) kept.write(sections.connectivity, former);
  },
});

/** What a file holds, for this data path; undefined: nothing that it can use. */
export const readKeptPlan = (file: PlanStore, kind: DataPathKind): NodePlan | undefined => {
  const kept = file.read();
  if (!kept) return undefined;
  const { sections, ...rendered } = kept;
  const { connectivity } = sections ?? {};
  if (connectivity && connectivity.version <= VERSION) return connectivity.plan;
  return rendered.dataplane === kind ? planOfRendered(rendered) : undefined;
};

export const keptPlanOf = (plan: NodePlan, kind: DataPathKind): KeptPlan => ({
  ...renderPlan(kind, plan),
  sections: { connectivity: { version: VERSION, plan } },
});
