import type { AgentConfig } from '../agent.config.ts';
import type { SectionType } from '../section.port.ts';
import { openTailnet } from './open-tailnet.ts';

/**
 * Pods of this node as devices of a tailnet: the tailnet agent of the node (apps/tailnet) is asked for those that may join, and for no others.
 * The section has nothing in the kernel; what a device needs there is the keeper's.
 */

/**
 * The CNI plugin waits 110 s for an answer, and other sections come first. The tailnet agent itself gives up on a device after 90 s, and has
 * then said what it waited for.
 */
const ADD_WITHIN_MS = 100_000;

const isSource = import.meta.url.endsWith('.ts');
/** In the checkout the source itself, in the image the bundle beside the agent's. */
const client = new URL(isSource ? './tailnet-client.lazy.ts' : './tailnet-client.lazy.mjs', import.meta.url);

export const tailnetSection = ({ tailnetSocket }: Pick<AgentConfig, 'tailnetSocket'>): SectionType => ({
  name: 'tailnet',
  hook: {
    // After the sections that make interfaces: theirs are before ts0 in the result.
    ...{ order: 40, timeoutMs: ADD_WITHIN_MS },
    // A pod that does not join waits for nobody; one that does gets its device when the section is open.
    unavailable: 'pass',
    concerns: ({ joins }) => joins === undefined,
  },
  async open(context) {
    const { createTailnetCni } = (await import(client.href)) as typeof import('./tailnet-client.lazy.ts');
    return openTailnet(context, { agent: createTailnetCni(tailnetSocket), socketPath: tailnetSocket });
  },
});
