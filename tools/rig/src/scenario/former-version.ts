import { formerTree } from '@unbounded/oci/former-tree';
import { CURRENT, type Installation, importImage, podsOf } from '../apps/chart.ts';
import type { LabLayout } from '../layout/layout.ts';
import { down } from '../substrate/down.ts';
import { up } from '../substrate/up.ts';
import { dropsAt, dropsSince, placesOf } from './drops.ts';
import type { RunningFlow } from './scenario.ts';

/** Labs that begin with an earlier version, and what is lost on the way to this one and back. */

/** A lab of the version of that commit, with this one's image on every node. */
export const upFormer = async (layout: LabLayout, commit: string): Promise<Installation> => {
  const former = formerTree(commit);
  await down();
  await up(layout, former);
  await importImage(layout, CURRENT.imageFile);
  return former;
};

/** Of which version the agents are, by node. */
export const agentVersions = async (layout: LabLayout): Promise<Record<string, string>> =>
  Object.fromEntries(
    (await podsOf(layout, 'node-dataplane')).map(({ spec }) => [
      spec.nodeName!,
      spec.containers[0]!.image.split(':')[1]!,
    ]),
  );

interface NamedFlow {
  readonly name: string;
  readonly flow: RunningFlow;
}

/**
 * Which of these flows lose more than is allowed while something happens that says what it does: with the moments, and what nodes dropped.
 */
export const lostOf = async (
  layout: LabLayout,
  flows: readonly NamedFlow[],
  act: (begins: (phase: string) => void) => Promise<unknown>,
  allowed = 0,
): Promise<string[]> => {
  const before = dropsAt(placesOf(layout));
  const beganMs = performance.now();
  const phases: string[] = [];
  await act((phase) => void phases.push(`${Math.round(performance.now() - beganMs)} ms: ${phase}`));
  const reports = await Promise.all(flows.map(async ({ name, flow }) => ({ name, ...(await flow.end()) })));
  console.log([...phases, ...reports.map(({ name, sent, lost }) => `${name}: ${lost} of ${sent} lost`)].join('\n'));
  const dropped = dropsSince(before, dropsAt(placesOf(layout)));
  return reports
    .filter(({ lost }) => lost > allowed)
    .map(
      ({ name, lost, losses }) =>
        `${name}: ${lost} lost, ${JSON.stringify(losses)}; ${phases.join('; ')}; dropped meanwhile: ${dropped}`,
    );
};
