import type { Check } from '../checks/checks.ts';
import type { Ground } from '../checks/reach-checks.ts';
import type { LabLayout, LabNode } from '../layout/layout.ts';

/**
 * What a feature adds to a lab of either substrate. Every function is called for every lab: one that the layout's options
 * do not ask for returns nothing and does nothing. The options themselves are in `options.ts` of the feature's folder.
 */
export interface Feature {
  /** Objects that a person applies, beside those of the sites. */
  readonly manifests: (layout: LabLayout) => readonly object[];
  /** Objects that a person applies once the lab is up; one without kubectl has them at once. */
  readonly examples: (layout: LabLayout) => readonly object[];
  /** Labels that a person puts on a node. */
  readonly labels: (layout: LabLayout, node: LabNode) => Readonly<Record<string, string>>;
  /** What nodes run: whether node-keeper has something to do. */
  readonly needsKeeper: (layout: LabLayout) => boolean;
  /** Starts what stands beside the sites, once the underlay is made. What runs is left alone. */
  readonly start: (layout: LabLayout) => void;
  /** Names of the daemons that {@link start} starts. */
  readonly daemons: (layout: LabLayout) => readonly string[];
  readonly checks: (ground: Ground) => Promise<readonly Check[]>;
  /** Commands of tools/lab that change the running lab or tell of it: each returns the layout that holds from now on. */
  readonly commands: Readonly<Record<string, Command>>;
}

/** @param running reads the running lab's layout; throws when there is none */
type Command = (words: readonly string[], running: () => LabLayout) => LabLayout;

/** A feature that adds nothing: others say in what they differ. */
export const NOTHING: Feature = {
  manifests: () => [],
  examples: () => [],
  labels: () => ({}),
  needsKeeper: () => false,
  start: () => undefined,
  daemons: () => [],
  checks: () => Promise.resolve([]),
  commands: {},
};
