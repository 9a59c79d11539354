import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { OAUTH_CLIENT } from '../../features/tailnet/control-server.ts';
import { targetsOf } from '../../features/prometheus/targets.ts';
import { kubectl } from '../../kubernetes/control-plane.ts';
import type { LabLayout } from '../../layout/layout.ts';
import { logFile } from '../../machine/paths.ts';
import { onNode, tryOnNode } from '../../node/node.ts';

/** Where secrets of the lab's tailnet are, beside the files that are theirs. */

/** Prefixes of auth keys and access tokens, as the control server makes them (tools/assets/tailnet-control), and the OAuth client's secret. */
const PLANTED = ['tskey-auth-', 'tskey-api-', OAUTH_CLIENT.secret];
/** In Debian's own words: what a process was started with, and its environment. */
const OF_PROCESSES = ['cmdline', 'environ'] as const;
const STATES = '/var/lib/tailscale-cni/pods/*/tailscaled.state';

/** Private keys of the devices of a node, from their own files: base64 of JSON in JSON. */
const nodeKeys = (node: string): string[] => {
  const files = tryOnNode(node, 'sh', '-c', `cat ${STATES}`) ?? '';
  const decoded = [...files.matchAll(/"([A-Za-z0-9+/=]{40,})"/g)].map(([, text]) =>
    Buffer.from(text!, 'base64').toString(),
  );
  const keys = decoded.flatMap((text) => text.match(/privkey:[0-9a-f]{64}/g) ?? []);
  return [...new Set(keys)].filter((key) => !/:0+$/.test(key)); // that of before, where there was none
};

const logs = (): [string, string][] => {
  const folder = join(logFile('x'), '..');
  return readdirSync(folder).map((name) => [`log ${name}`, readFileSync(join(folder, name), 'latin1')]);
};

/** Of all of the machine: those of nodes are among them. */
const processes = (): [string, string][] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) =>
      OF_PROCESSES.flatMap((file): [string, string][] => {
        try {
          return [
            [
              `${file} of ${readFileSync(`/proc/${pid}/comm`, 'utf8').trim()}`,
              readFileSync(`/proc/${pid}/${file}`, 'latin1'),
            ],
          ];
        } catch {
          return []; // it has just ended
        }
      }),
    );

const KINDS = 'tailnetdevices,meshes,events,pods,configmaps,leases,nodes,daemonsets,deployments';
const objects = async (layout: LabLayout): Promise<[string, string][]> => [
  ['objects', await kubectl(layout, ['get', KINDS, '-A', '-o', 'json'])],
];

/** Of every program, as the node of the control plane reads them. */
const metrics = (layout: LabLayout): [string, string][] =>
  targetsOf(layout).map(({ job, address }): [string, string] => [
    `metrics of ${job} at ${address}`,
    onNode(layout.controlPlane.name, 'curl', '-sf', `http://${address}/metrics`),
  ]);

/** Files of our programs on a node, but for those that keep a secret by design: of the device itself. */
const files = (nodes: readonly string[]): [string, string][] =>
  nodes.map((node) => [
    `files on ${node}`,
    onNode(
      node,
      ...[
        'sh',
        '-c',
        'find /run/unbounded /var/lib/unbounded /var/lib/tailscale-cni -type f ! -name tailscaled.state -exec cat {} +',
      ],
    ),
  ]);

export interface SecretsLook {
  /** Private keys of devices that were looked for. */
  readonly keys: number;
  /** Places that were looked at. */
  readonly places: number;
  /** Each with the first characters of what is there. */
  readonly found: readonly string[];
}

export const lookForSecrets = async (layout: LabLayout): Promise<SecretsLook> => {
  const nodes = layout.nodes.map(({ name }) => name);
  const keys = nodes.flatMap(nodeKeys);
  // A look for the key itself, without its prefix.
  const wanted = [...PLANTED, ...keys.map((key) => key.slice('privkey:'.length))];
  const places = [...logs(), ...processes(), ...(await objects(layout)), ...metrics(layout), ...files(nodes)];
  const found = places.flatMap(([place, text]) =>
    wanted.filter((secret) => text.includes(secret)).map((secret) => `${place}: ${secret.slice(0, 12)}`),
  );
  return { keys: keys.length, places: places.length, found };
};
