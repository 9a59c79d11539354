import { tryOnNode } from '../node/node.ts';

/** What an agent says of itself and its peers, asked on its node. */

const isReadyAt = (node: string, port: number): boolean =>
  tryOnNode(node, 'curl', '-sf', '--max-time', '2', `http://127.0.0.1:${port}/readyz`) !== undefined;

export const agentReady = (node: string): boolean => isReadyAt(node, 9998);
/** The agent of a tailnet. */
export const tailnetReady = (node: string): boolean => isReadyAt(node, 9988);

const METRICS = ['curl', '-s', '--max-time', '2', 'http://127.0.0.1:9998/metrics'];

/** Everything that an agent measures; nothing while it does not answer. */
export const metricsOn = (node: string): string => tryOnNode(node, ...METRICS) ?? '';

/** Peers of a node by the state in which it sees them; none while its agent does not answer. */
export const peerStates = (node: string): Record<string, number> => {
  const states: Record<string, number> = {};
  for (const [, state = '', count] of metricsOn(node).matchAll(/^unbounded_health_peers\{.*state="(\w+)"\} (\d+)/gm))
    states[state] = (states[state] ?? 0) + Number(count);
  return states;
};
