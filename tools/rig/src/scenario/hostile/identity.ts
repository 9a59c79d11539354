import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { agentTokenFile } from '../../apps/tokens.ts';
import { apiServerUrl, type LabLayout, type LabNode } from '../../layout/layout.ts';
import { inNode, tryOnNode } from '../../node/node.ts';
import { controlPlaneDir, nodeDir } from '../../machine/paths.ts';
import { runAsync } from '../../machine/command.ts';

/** Credentials that root on a node can take, and what the API server answers to them. */

export interface Identity {
  readonly name: string;
  /** Asks the API server, from the node. */
  ask(method: string, path: string, body?: object, contentType?: string): Promise<Answer>;
}

export interface Answer {
  readonly status: number;
  readonly text: string;
}

export const MERGE = 'application/merge-patch+json';

const asking = (layout: LabLayout, node: LabNode, credentials: readonly string[]): Identity['ask'] => {
  const server = apiServerUrl(layout, node.site);
  return async (method, path, body, contentType = 'application/json') => {
    const argv = [
      ...[...inNode(node.name), 'curl', '-sS', '--max-time', '10', '--cacert', join(controlPlaneDir, 'ca.crt')],
      ...[...credentials, '-X', method, '-H', `content-type: ${contentType}`, '-w', '\n%{http_code}'],
      ...(body === undefined ? [] : ['--data-binary', '@-']),
      `${server}${path}`,
    ];
    const printed = await runAsync(argv, body === undefined ? {} : { input: JSON.stringify(body) });
    const end = printed.lastIndexOf('\n');
    return { status: Number(printed.slice(end + 1)), text: printed.slice(0, end) };
  };
};

/** The token of the node's agent: a file of the process here, of the pod's volume in a lab of pods. */
const agentToken = (layout: LabLayout, node: string): string => {
  if (layout.options.agents === 'process') return readFileSync(agentTokenFile(node), 'utf8');
  const mounted =
    'cat /proc/$(pgrep -of "^/usr/bin/node .*/unbounded/apps/node-dataplane")/root/var/run/secrets/kubernetes.io/serviceaccount/token';
  const token = tryOnNode(node, 'bash', '-c', mounted);
  if (!token) throw new Error(`no agent with a token runs on ${node}`);
  return token;
};

export const agentOf = (layout: LabLayout, node: LabNode): Identity => {
  const header = join(mkdtempSync(join(tmpdir(), 'unbounded-lab-')), 'header');
  writeFileSync(header, `authorization: Bearer ${agentToken(layout, node.name).trim()}`, { mode: 0o600 });
  return { name: `the agent's token of ${node.name}`, ask: asking(layout, node, ['-H', `@${header}`]) };
};

export const kubeletOf = (layout: LabLayout, node: LabNode): Identity => {
  const file = (kind: string): string => join(nodeDir(node.name), `kubelet.${kind}`);
  const credentials = ['--cert', file('crt'), '--key', file('key')];
  return { name: `the kubelet's certificate of ${node.name}`, ask: asking(layout, node, credentials) };
};

/** @throws Error when the API server does as it is asked */
export const expectRefused = ({ status, text }: Answer): string => {
  if (status < 400 || status >= 500) throw new Error(`the API server answered ${status}: ${text.slice(0, 300)}`);
  const message = /"message":\s*"((?:[^"\\]|\\.)*)"/.exec(text)?.[1] ?? text;
  return `${status} ${message}`;
};

/** @throws Error when the API server refuses */
export const expectTaken = ({ status, text }: Answer): Answer => {
  if (status >= 300) throw new Error(`the API server answered ${status}: ${text.slice(0, 500)}`);
  return { status, text };
};
