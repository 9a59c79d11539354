import { join } from 'node:path';
import { type ObjectSource, startAgentFrom, stopAgent } from '../../apps/agents.ts';
import { writeTokenKubeconfig } from '../../apps/token-kubeconfig.ts';
import { agentTokenFile, NODE_AGENT } from '../../apps/tokens.ts';
import { labPki } from '../../kubernetes/control-plane.ts';
import { hostOf } from '../../layout/addresses.ts';
import { API_SERVER_PORT, apiServerIp, type LabLayout, namespaceOf } from '../../layout/layout.ts';
import { inNamespace } from '../../machine/command.ts';
import { logTail, startDaemon, stopDaemon } from '../../machine/daemon.ts';
import { nodeDir, nodeJs } from '../../machine/paths.ts';
import { startAgent } from '../../substrate/agents.ts';

/** Agents whose watches are behind: what they ask for is answered at once, and what they are told is late. */

const DAEMON = 'late-watches';
const PORT = 6444;
const STOP_MS = 3000;
const TOKEN_MS = 10_000;
const LOG_LINES = 1000;

const kubeconfigOf = (node: string): string => join(nodeDir(node), 'late.kubeconfig');

const late: ObjectSource = {
  prepare: (layout, node) =>
    writeTokenKubeconfig(kubeconfigOf(node.name), {
      server: `https://${hostOf(apiServerIp(layout, node.site))}:${PORT}`,
      tokenFile: agentTokenFile(node.name),
      deadlineMs: TOKEN_MS,
    }),
  flags: (node) => ['--kubeconfig', kubeconfigOf(node.name)],
};

const restart = async (layout: LabLayout, names: readonly string[], start: typeof startAgent): Promise<void> => {
  for (const node of layout.nodes.filter(({ name }) => names.includes(name))) {
    await stopAgent(node.name, NODE_AGENT);
    await start(layout, node, NODE_AGENT);
  }
};

/** The agents of these nodes are started anew, behind the API server by this much, and as they were in the end. */
export const withLateWatches = async (
  layout: LabLayout,
  { nodes, lateMs }: { readonly nodes: readonly string[]; readonly lateMs: number },
  act: () => Promise<void>,
): Promise<void> => {
  const pki = labPki();
  const words = [PORT, API_SERVER_PORT, lateMs].map(String);
  const files = [pki.file('apiserver', 'crt'), pki.file('apiserver', 'key'), pki.file('ca', 'crt')];
  const program = [nodeJs, join(import.meta.dirname, 'late-watches.scenario.ts'), ...words, ...files];
  startDaemon(DAEMON, [...inNamespace(namespaceOf(layout.controlPlane.name)), ...program]);
  try {
    await restart(layout, nodes, (_, node, app) => startAgentFrom(late, layout, { node, app }));
    await act();
    if (!logTail(DAEMON, LOG_LINES).includes('/egressnodeslices?'))
      throw new Error('no agent has watched by the late way');
  } finally {
    await restart(layout, nodes, startAgent);
    await stopDaemon(DAEMON, STOP_MS);
  }
};
