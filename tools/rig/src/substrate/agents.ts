import { type NodeApp, startAgentFrom } from '../apps/agents.ts';
import type { LabLayout, LabNode } from '../layout/layout.ts';
import { substrateOf } from './substrates.ts';

/** Starts an agent inside its node, with the objects of the lab's substrate; a running one is left alone. */
export const startAgent = (
  layout: LabLayout,
  node: LabNode,
  app: NodeApp,
  env: NodeJS.ProcessEnv = {},
): Promise<void> => startAgentFrom(substrateOf(layout).objectSource, layout, { node, app, env });
