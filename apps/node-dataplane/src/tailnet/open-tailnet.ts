import { meshKind } from '@unbounded/crds';
import type { TailnetCni } from '@unbounded/tailnet-cni';
import type { Problem } from '@unbounded/topology';
import { problemCondition } from '../section-condition.ts';
import type { Section, SectionContext, SectionPass } from '../section.port.ts';
import { createAnnotationsReader } from '../world/pod-metadata.ts';
import { createProblemLog } from '../world/problem-log.ts';
import { createAgentWatch } from './agent-watch.ts';
import { createCatchUp } from './catch-up.ts';
import { createHandlers } from './handlers.ts';
import { createKeptJoining, joiningOf, settingsOf } from './joining.ts';
import { createPodChoice } from './pod-choice.ts';

/** The section once it is on: it follows the Mesh, asks the tailnet agent, and tells when that does not answer. */

const EVERY_MS = 60_000;
const LOOKING_EVERY_MS = 5000;

const CONDITION = 'UnboundedTailnet';

const passOf = (problems: readonly Problem[], isOn: boolean, isLooking: boolean): SectionPass => {
  const fine = { type: CONDITION, status: 'True', reason: 'Serving' } as const;
  const message = 'no pod of the node waits in vain for the tailnet agent';
  const condition = problemCondition(CONDITION, problems) ?? (isOn ? { ...fine, message } : undefined);
  return {
    nextPassMs: isLooking ? LOOKING_EVERY_MS : EVERY_MS,
    report: { problems, ...(condition && { conditions: [condition] }) },
  };
};

/** Whether a look at all pods is due: now and then, and when the settings are others. */
const createRounds = () => {
  let known: string | undefined;
  let lookedMs = -Infinity;
  return (settings: unknown): 'none' | 'again' | 'anew' => {
    const text = JSON.stringify(settings);
    const isAnew = text !== known;
    // Passes come with every change of the Node, too.
    if (!isAnew && performance.now() - lookedMs < EVERY_MS - LOOKING_EVERY_MS) return 'none';
    [known, lookedMs] = [text, performance.now()];
    return isAnew ? 'anew' : 'again';
  };
};

/** The section's own client: it is closed with the section. */
export interface TailnetClient {
  readonly agent: TailnetCni;
  readonly socketPath: string;
}

export const openTailnet = (context: SectionContext, { agent, socketPath }: TailnetClient): Section => {
  const { attachment, cluster, logger, openInputs, trigger } = context;
  const source = openInputs({ meshes: meshKind });
  const joining = createKeptJoining(context.kept);
  const choice = createPodChoice(() => joining.current());
  const watch = createAgentWatch({ agent, socketPath, trigger });
  const catchUp = createCatchUp({ agent, choice, logger, annotationsOf: createAnnotationsReader(cluster) });
  const adding = new Set<string>();
  const dueRound = createRounds();
  const logProblems = createProblemLog(logger);

  const lookAtPods = (settings: ReturnType<typeof settingsOf>): void => {
    const round = dueRound(settings);
    if (round === 'none') return;
    const pods = attachment.pods.list().filter(({ joins }) => joins === undefined);
    choice.keepOnly(new Set(pods.map(({ uid }) => uid)));
    if (round === 'anew') catchUp.reconsider();
    if (settings) catchUp.look(pods.filter(({ containerId }) => !adding.has(containerId)));
  };
  return {
    async pass() {
      const snapshot = source.snapshot();
      if (snapshot) {
        const settings = settingsOf(snapshot.objects.meshes);
        joining.update(joiningOf(settings));
        lookAtPods(settings);
      }
      const problems = await watch.problems();
      logProblems(problems);
      return passOf(problems, joining.current() !== 'Off', watch.isLooking);
    },
    hook: createHandlers({ agent, choice, watch, catchUp, adding, logger }),
    async stop() {
      catchUp.stop();
      agent[Symbol.dispose]();
    },
  };
};
