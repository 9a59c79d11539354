import { join } from 'node:path';
import type { ObjectSource } from '../../apps/agents.ts';
import { writeTokenKubeconfig } from '../../apps/token-kubeconfig.ts';
import { agentTokenFile, NODE_AGENT } from '../../apps/tokens.ts';
import { apiServerUrl } from '../../layout/layout.ts';
import { nodeDir } from '../../machine/paths.ts';

const TOKEN_DEADLINE_MS = 60_000;

/** Agents of a cluster read from the API server, with a token of their own. */
export const objectSource: ObjectSource = {
  async prepare(layout, node) {
    await writeTokenKubeconfig(kubeconfigOf(node.name), {
      server: apiServerUrl(layout, node.site),
      tokenFile: agentTokenFile(node.name),
      deadlineMs: TOKEN_DEADLINE_MS,
    });
  },
  flags: (node) => ['--kubeconfig', kubeconfigOf(node.name)],
};

const kubeconfigOf = (node: string): string => join(nodeDir(node), `${NODE_AGENT}.kubeconfig`);
