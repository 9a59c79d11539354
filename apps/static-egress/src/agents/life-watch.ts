import type { Informer, Source } from '@unbounded/controller-runtime';
import type { EgressNodeSlice } from '@unbounded/crds';
import type { HostPart } from '@unbounded/host';
import type { Node } from '@unbounded/kube';

import type { AgentLife } from './agent-life.ts';

/** That an agent fell silent is no event: someone has to look. */
const LOOK_MS = 1000;

const isSame = (a: ReadonlySet<string>, b: ReadonlySet<string>): boolean => a.size === b.size && a.isSubsetOf(b);

/** Feeds heartbeats to what is known of agents, and asks for a plan when one comes or goes. */
export const createLifeWatch = (
  life: AgentLife,
  {
    slices,
    nodes,
    key,
  }: { readonly slices: Informer<EgressNodeSlice>; readonly nodes: Informer<Node>; readonly key: string },
): { readonly source: Source; readonly part: HostPart } => {
  let told: ReadonlySet<string> = new Set();
  let tell: () => void = () => {};
  const look = (): void => {
    const alive = life.alive();
    if (isSame(alive, told)) return;
    told = alive;
    tell();
  };
  slices.on(({ type, object }) => {
    if (type !== 'deleted') life.note(object);
  });
  nodes.on(({ type, object }) => {
    if (type === 'deleted') life.forget(object.metadata.uid ?? '');
  });
  let timer: NodeJS.Timeout | undefined;
  return {
    source: {
      connect: (enqueue) => {
        tell = () => enqueue(key);
      },
      keys: () => [],
    },
    part: {
      name: 'agent life',
      start: () => {
        timer = setInterval(look, LOOK_MS);
      },
      stop: () => clearInterval(timer),
    },
  };
};
