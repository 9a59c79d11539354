import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ClusterView } from '@unbounded/status';
import { kubectl } from '../../kubernetes/control-plane.ts';
import type { LabLayout } from '../../layout/layout.ts';
import { runAsync } from '../../machine/command.ts';
import { state } from '../../machine/paths.ts';
import { inNode } from '../../node/node.ts';

/** A viewer of the status aggregator, as docs/status.md has it: a token, the authority from the ConfigMap, and curl. */
export interface Viewer {
  view(): Promise<ClusterView>;
}

const ACCOUNT = 'status-viewer';
const NAMESPACE = 'unbounded-system';
const caFile = join(state, 'status-ca.crt');

/** @param endpoint HOST:PORT as the node of the control plane reaches it */
export const createViewer = async (layout: LabLayout, endpoint: string): Promise<Viewer> => {
  await kubectl(layout, ['create', 'serviceaccount', ACCOUNT, '-n', 'default']);
  const role = ['--clusterrole=unbounded:status-viewer', `--serviceaccount=default:${ACCOUNT}`];
  await kubectl(layout, ['create', 'clusterrolebinding', ACCOUNT, ...role]);
  const token = (await kubectl(layout, ['create', 'token', ACCOUNT, '-n', 'default', '--duration=4h'])).trim();
  const authority = ['get', 'configmap', 'status-aggregator-ca', '-n', NAMESPACE, '-o', 'jsonpath={.data.ca\\.crt}'];
  writeFileSync(caFile, await kubectl(layout, authority));
  const curl = ['curl', '-sS', '--fail-with-body', '--max-time', '5', '--cacert', caFile];
  const to = ['--connect-to', `status-aggregator::${endpoint}`, '--header', '@-'];
  return {
    async view() {
      const printed = await runAsync(
        [...inNode(layout.controlPlane.name), ...curl, ...to, 'https://status-aggregator/v1alpha1/view'],
        { input: `Authorization: Bearer ${token}\n` }, // not among the arguments, which every process may read
      );
      return (JSON.parse(printed) as { readonly view: ClusterView }).view;
    },
  };
};
