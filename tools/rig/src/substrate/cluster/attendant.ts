/**
 * What a real installation has around a cluster and the lab must play: the cloud provider, which fills in node
 * addresses and takes the "uninitialized" taint off, the administrator, who labels gateways (and annotates them where no
 * cloud knows their addresses), and the kubelet's part of renewing ServiceAccount tokens (our agents are processes here,
 * not pods). Runs in the control-plane node's network namespace until it is killed.
 *
 * Usage: attendant.ts LAYOUT_JSON_FILE
 */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { dirname } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { annotations } from '@unbounded/crds';
import { labelsOf } from '../../features/features.ts';
import { labPki } from '../../kubernetes/control-plane.ts';
import { announcedAddress, apiServerUrl, type LabLayout, type LabNode } from '../../layout/layout.ts';
import { tokensOf, type TokenSpec } from '../../apps/tokens.ts';
import { isUnattended } from './unattended.ts';

const POLL_MS = 500;
const TOKEN_LIFETIME_S = 3600; // the shortest that the API server gives is 10 minutes
const RENEW_AFTER_MS = (TOKEN_LIFETIME_S * 1000) / 2;

const layout = JSON.parse(readFileSync(process.argv[2]!, 'utf8')) as LabLayout;
const pki = labPki();
const server = apiServerUrl(layout, layout.controlPlane.site);
const agent = new Agent({
  keepAlive: true,
  ca: readFileSync(pki.file('ca', 'crt')),
  cert: readFileSync(pki.file('admin', 'crt')),
  key: readFileSync(pki.file('admin', 'key')),
});

const api = (method: string, path: string, body?: object, contentType = 'application/json'): Promise<unknown> =>
  new Promise((resolve, reject) => {
    const call = request(
      `${server}${path}`,
      { method, agent, headers: { 'content-type': contentType }, timeout: 10_000 },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('end', () => {
          const text = Buffer.concat(chunks).toString();
          if ((response.statusCode ?? 500) >= 300)
            reject(new Error(`${method} ${path}: ${response.statusCode} ${text.slice(0, 300)}`));
          else resolve(JSON.parse(text));
        });
        response.on('error', reject);
      },
    );
    call.on('timeout', () => call.destroy(new Error(`${method} ${path}: no answer in 10 s`)));
    call.on('error', reject);
    call.end(body && JSON.stringify(body));
  });

interface KubeNode {
  metadata: { name: string; labels?: Record<string, string> };
  spec: { taints?: { key: string; value?: string; effect: string }[] };
  status: { addresses?: { type: string; address: string }[] };
}

const UNINITIALIZED = 'node.cloudprovider.kubernetes.io/uninitialized';
/** A kubelet cannot set it on its own Node. */
const GATEWAY_OF = 'node-restriction.kubernetes.io/gateway-of';
const CONTROL_PLANE = 'node-role.kubernetes.io/control-plane';

const addressesOf = (node: LabNode) => [
  { type: 'Hostname', address: node.name },
  ...node.internalIps.map((address) => ({ type: 'InternalIP', address })),
  ...(node.role === 'gateway' && layout.options.topology !== 'mapped'
    ? (node.external?.ips ?? []).map((address) => ({ type: 'ExternalIP', address }))
    : []),
];

const provideNode = async (seen: KubeNode): Promise<void> => {
  const { name } = seen.metadata;
  const node = layout.nodes.find((candidate) => candidate.name === name);
  if (!node || isUnattended(name)) return;
  const addresses = addressesOf(node);
  if (JSON.stringify(seen.status.addresses) !== JSON.stringify(addresses)) {
    await api('PATCH', `/api/v1/nodes/${name}/status`, { status: { addresses } }, 'application/merge-patch+json');
  }
  const taints = seen.spec.taints ?? [];
  if (taints.some((taint) => taint.key === UNINITIALIZED)) {
    const kept = taints.filter((taint) => taint.key !== UNINITIALIZED);
    const labels = {
      ...(node.role === 'control-plane' ? { [CONTROL_PLANE]: '' } : {}),
      ...(node.role === 'gateway' ? { [GATEWAY_OF]: node.site } : {}),
      ...labelsOf(layout, node),
    };
    const announced = announcedAddress(layout, node);
    const notes = announced === undefined ? {} : { [annotations.externalAddress]: announced };
    await api(
      'PATCH',
      `/api/v1/nodes/${name}`,
      { metadata: { labels, annotations: notes }, spec: { taints: kept } },
      'application/merge-patch+json',
    );
  }
};

const renewedAt = new Map<string, number>();

/** Asks for a token, bound to the node (if any) so that the API server sees whose it is, and refuses it without the node. */
const renewToken = async (token: TokenSpec, nodeUid: string | undefined): Promise<void> => {
  const boundObjectRef = token.node ? { apiVersion: 'v1', kind: 'Node', name: token.node, uid: nodeUid } : undefined;
  const path = `/api/v1/namespaces/${token.namespace}/serviceaccounts/${token.serviceAccount}/token`;
  const body = {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    spec: {
      expirationSeconds: TOKEN_LIFETIME_S,
      ...(boundObjectRef ? { boundObjectRef } : {}),
      ...(token.audience === undefined ? {} : { audiences: [token.audience] }),
    },
  };
  const answer = (await api('POST', path, body)) as { status: { token: string } };
  mkdirSync(dirname(token.file), { recursive: true });
  writeFileSync(`${token.file}.new`, answer.status.token, { mode: 0o600 });
  renameSync(`${token.file}.new`, token.file);
  renewedAt.set(token.file, Date.now());
};

const attend = async (): Promise<void> => {
  const { items } = (await api('GET', '/api/v1/nodes')) as { items: (KubeNode & { metadata: { uid: string } })[] };
  for (const node of items) await provideNode(node);
  for (const token of tokensOf(layout)) {
    const uid = items.find((node) => node.metadata.name === token.node)?.metadata.uid;
    if (token.node && !uid) continue;
    if (Date.now() - (renewedAt.get(token.file) ?? 0) > RENEW_AFTER_MS) await renewToken(token, uid);
  }
};

let reported = '';
for (;;) {
  try {
    await attend();
    reported = '';
  } catch (error) {
    const message = (error as Error).message; // the API server may be away for a while: that is one of the lab's tests
    if (message !== reported) console.error(message);
    reported = message;
  }
  await delay(POLL_MS);
}
