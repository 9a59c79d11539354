import { type Mesh, MESH_NAME, type TailnetSettings } from '@unbounded/crds';
import { readJoin, RefusedAnnotationError } from '@unbounded/tailnet';
import type { KeptSection } from '../section.port.ts';

/** Which pods may join a tailnet, by the Mesh and their annotation alone. The tailnet agent decides exactly: it knows the namespaces, too. */

/** Off: there is no tailnet. OnRequest: pods that ask for it. UnlessDeclined: a rule takes others in, too. */
export type Joining = 'Off' | 'OnRequest' | 'UnlessDeclined';

export const settingsOf = (meshes: readonly Mesh[]): TailnetSettings | undefined =>
  meshes.find(({ metadata }) => metadata.name === MESH_NAME)?.spec.tailnet;

export const joiningOf = (settings: TailnetSettings | undefined): Joining => {
  if (!settings) return 'Off';
  return settings.rules.some(({ join }) => join === 'UnlessDeclined') ? 'UnlessDeclined' : 'OnRequest';
};

/** What the annotation says; undefined: there is none. With one that is invalid the pod is no device, whatever a rule says. */
export const askedBy = (annotations: Readonly<Record<string, string>>): boolean | undefined => {
  try {
    return readJoin(annotations);
  } catch (error) {
    if (error instanceof RefusedAnnotationError) return false;
    throw error;
  }
};

/** An annotation counts also where no Mesh is known: whoever asks for a device starts with it, or hears why not. */
export const mayJoin = (asked: boolean | undefined, joining: Joining): boolean => asked ?? joining === 'UnlessDeclined';

const VERSION = 1;
const JOININGS: readonly unknown[] = ['Off', 'OnRequest', 'UnlessDeclined'] satisfies Joining[];

/**
 * As the Mesh last had it, also for the next agent: a pod that starts before the API server has answered is held back if it may join, and
 * sends nothing for the tailnet by another interface. An agent that has never seen a Mesh lets pods without annotation start.
 */
export const createKeptJoining = (kept: KeptSection) => {
  const before = kept.read();
  let joining = before?.version === VERSION && JOININGS.includes(before.plan) ? (before.plan as Joining) : undefined;
  return {
    current: (): Joining => joining ?? 'Off',
    update(seen: Joining): void {
      if (seen === joining) return;
      joining = seen;
      kept.write({ version: VERSION, plan: joining });
    },
  };
};
