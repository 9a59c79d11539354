import type { METRICS_PORTS } from '@unbounded/config/ownership';
import { tryOnNode } from '../node/node.ts';

/** What an agent says of itself and its peers, asked on its node. */

/** TCP: where agents have their health and metrics, when they are not given another port. */
export const [AGENT_PORT, TAILNET_PORT] = [9998, 9988] as const satisfies readonly (typeof METRICS_PORTS)[number][];

const isReadyAt = (node: string, port: number): boolean =>
  tryOnNode(node, 'curl', '-sf', '--max-time', '2', `http://127.0.0.1:${port}/readyz`) !== undefined;

export const agentReady = (node: string): boolean => isReadyAt(node, AGENT_PORT);
/** The agent of a tailnet. */
export const tailnetReady = (node: string): boolean => isReadyAt(node, TAILNET_PORT);

const METRICS = ['curl', '-s', '--max-time', '2', `http://127.0.0.1:${AGENT_PORT}/metrics`];

/** Everything that an agent measures; nothing while it does not answer. */
export const metricsOn = (node: string): string => tryOnNode(node, ...METRICS) ?? '';

/** Peers of a node by the state in which it sees them; none while its agent does not answer. */
export const peerStates = (node: string): Record<string, number> => {
  const states: Record<string, number> = {};
  for (const [, state = '', count] of metricsOn(node).matchAll(/^unbounded_health_peers\{.*state="(\w+)"\} (\d+)/gm))
    states[state] = (states[state] ?? 0) + Number(count);
  return states;
};
