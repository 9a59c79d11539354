import { join } from 'node:path';
import type { ObjectSource, ReadingApp } from '../../apps/agents.ts';
import { writeTokenKubeconfig } from '../../apps/token-kubeconfig.ts';
import { agentTokenFile, NODE_AGENT, tailnetTokenFile } from '../../apps/tokens.ts';
import { apiServerUrl } from '../../layout/layout.ts';
import { nodeDir } from '../../machine/paths.ts';

const TOKEN_DEADLINE_MS = 60_000;

/** Agents of a cluster read from the API server, with a token of their own. */
export const objectSource: ObjectSource = {
  async prepare(layout, node, app) {
    await writeTokenKubeconfig(kubeconfigOf(node.name, app), {
      server: apiServerUrl(layout, node.site),
      tokenFile: app === NODE_AGENT ? agentTokenFile(node.name) : tailnetTokenFile(node.name),
      deadlineMs: TOKEN_DEADLINE_MS,
    });
  },
  flags: (node, app) => ['--kubeconfig', kubeconfigOf(node.name, app)],
};

const kubeconfigOf = (node: string, app: ReadingApp): string => join(nodeDir(node), `${app}.kubeconfig`);
