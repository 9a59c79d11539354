import { spawnSync } from 'node:child_process';
import { GROUP_VERSION, MESH_NAME, tailnetAnnotations } from '@unbounded/crds';
import { NAMESPACE } from '../../apps/tokens.ts';
import type { LabLayout } from '../../layout/layout.ts';
import { UsageError } from '../../layout/usage-error.ts';
import { binary } from '../../machine/paths.ts';
import { type Feature, NOTHING } from '../feature.ts';
import { tailnetChecks } from './checks.ts';
import { CONTROL_DAEMON, OAUTH_CLIENT, startControlServer } from './control-server.ts';
import { asLaptopUser, laptopDaemons, startLaptop } from './laptop.ts';
import { controlUrl, hasTailnet } from './layout.ts';

/** A tailnet outside of the sites, whose devices the test pods are. */

/** As the chart has it by default. */
const SECRET = 'tailscale-cni-oauth';

/** On pods that join it. */
export const tailnetPodAnnotations = (layout: LabLayout): Readonly<Record<string, string>> =>
  hasTailnet(layout) ? { [tailnetAnnotations.join]: 'true', [tailnetAnnotations.start]: 'WaitForDevice' } : {};

const secret = {
  ...{ apiVersion: 'v1', kind: 'Secret', metadata: { name: SECRET, namespace: NAMESPACE } },
  stringData: { 'client-id': OAUTH_CLIENT.id, 'client-secret': OAUTH_CLIENT.secret },
};

const mesh = (layout: LabLayout): object => ({
  ...{ apiVersion: GROUP_VERSION, kind: 'Mesh', metadata: { name: MESH_NAME } },
  spec: {
    tailnet: {
      ...{ controlURL: controlUrl(layout), apiURL: controlUrl(layout), clusterName: 'lab' },
      credentials: { oauthClientSecret: SECRET },
      rules: [{ namespaceSelector: {}, join: 'OnRequest', allowedTags: ['tag:database'] }],
    },
  },
});

export const tailnet: Feature = {
  ...NOTHING,
  manifests: (layout) => (hasTailnet(layout) ? [secret, mesh(layout)] : []),
  start(layout) {
    if (!hasTailnet(layout)) return;
    startControlServer(layout);
    startLaptop(layout);
  },
  daemons: (layout) => (hasTailnet(layout) ? [CONTROL_DAEMON, ...laptopDaemons] : []),
  checks: (ground) => (hasTailnet(ground.layout) ? tailnetChecks(ground) : Promise.resolve([])),
  commands: {
    laptop(words, running) {
      const layout = running();
      if (!hasTailnet(layout)) throw new UsageError('this lab has no laptop: tools/lab down, then up --tailnet');
      if (words.length === 0) throw new UsageError('run what on the laptop? tools/lab laptop ping -c3 ADDRESS');
      const [program, ...args] = words.map((word) => (word === '/probe' ? binary('probe') : word));
      const { status } = spawnSync(asLaptopUser()[0]!, [...asLaptopUser().slice(1), program!, ...args], {
        stdio: 'inherit',
      });
      process.exitCode = status ?? 1;
      return layout;
    },
  },
};
