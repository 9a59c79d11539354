import { annotations, GROUP_VERSION } from '@unbounded/crds';
import { kubectl } from '../../kubernetes/control-plane.ts';
import type { LabLayout, LabNode } from '../../layout/layout.ts';
import type { Attempt } from '../hostile/attempts.ts';
import { expectRefused, type Identity, MERGE } from '../hostile/identity.ts';
import { timeUntil } from '../scenario.ts';
import type { OnLan } from './place.ts';
import { createPods } from './pods.ts';

/** What is claimed at the API server: with the token of an agent, and by pods that ask for what they must not have. */

export interface ClaimTargets {
  readonly layout: LabLayout;
  readonly home: LabNode;
  /** The token of the agent of the node. */
  readonly agent: Identity;
  /** A pod on another node. */
  readonly victim: OnLan;
  /** Names of the entries of its MAC and of its IPv4 address. */
  readonly fdbEntry: string;
  readonly neighbor: string;
  readonly locatorOf: (node: string) => string;
}

const NETWORK = 'lan';
/** Takes the pods of namespaces with a label that none has. */
const CLOSED = 'closed';
const TAKEN = /\S+ \S+ is taken by [\w/.-]+/;
const REFUSED_MS = 25_000;

const path = (plural: string, name: string, subresource = ''): string =>
  `/apis/${GROUP_VERSION}/${plural}/${name}${subresource}`;

export const tokenAttempts = ({ home, agent, victim, fdbEntry, neighbor, locatorOf }: ClaimTargets): Attempt[] => {
  const refused = (name: string, method: string, at: string, body?: object): Attempt => ({
    name,
    expected: 'rejected',
    run: async () => expectRefused(await agent.ask(method, at, body, method === 'PATCH' ? MERGE : 'application/json')),
  });
  const mac = path('fdbentries', fdbEntry);
  const address = path('neighbors', neighbor);
  const endpoint = path(`namespaces/default/networkendpoints`, `${victim.pod.name}.net1`);
  const here = { managingNode: home.name };
  return [
    refused('its node as the place of another’s MAC', 'PATCH', `${mac}/status`, { status: here }),
    refused('its node as the place of another’s address', 'PATCH', `${address}/status`, { status: here }),
    refused('the end of another’s MAC', 'DELETE', mac),
    refused('the end of another’s address', 'DELETE', address),
    refused('another’s endpoint without its finalizer', 'PATCH', endpoint, { metadata: { finalizers: [] } }),
    refused('the end of another’s endpoint', 'DELETE', endpoint),
    refused('the locator of another node', 'PATCH', `/api/v1/nodes/${home.name}`, {
      metadata: { annotations: { [annotations.l2Locator]: `${locatorOf(victim.pod.node)}/64` } },
    }),
  ];
};

/** Pods that stay without a network: what is asked for is another's, or not for their namespace. The kubelet's Event says why. */
export const podClaimAttempts = ({ layout, home, victim }: ClaimTargets): Attempt[] => {
  const attempt = (name: string, pod: string, wanted: object, says: RegExp): Attempt => ({
    name,
    expected: 'rejected',
    async run() {
      await createPods(layout, { name: pod, node: home.name, networks: JSON.stringify([wanted]) });
      const messages = (): Promise<string> =>
        kubectl(layout, [
          'get',
          'events',
          `--field-selector=involvedObject.name=${pod}`,
          '-o',
          'jsonpath={.items[*].message}',
        ]);
      await timeUntil(`an Event that says ${says}`, async () => says.test(await messages()), REFUSED_MS);
      return says.exec(await messages())![0];
    },
    async undo() {
      await kubectl(layout, ['delete', 'pod', pod, '--ignore-not-found', '--force', '--grace-period=0']);
    },
  });
  return [
    attempt(
      'a pod with the address of another',
      'claims-address',
      { network: NETWORK, addresses: [victim.ipv4] },
      TAKEN,
    ),
    attempt('a pod with the MAC of another', 'claims-mac', { network: NETWORK, mac: victim.mac }, TAKEN),
    attempt(
      'a pod of a namespace that may not attach',
      'claims-network',
      { network: CLOSED },
      /spec.namespaceSelector does not select namespace "default"/,
    ),
  ];
};

/** Of which no namespace of the lab is. */
export const closedNetwork = {
  ...{ apiVersion: GROUP_VERSION, kind: 'Network', metadata: { name: CLOSED } },
  spec: { prefixes: ['192.168.78.0/24'], namespaceSelector: { matchLabels: { members: 'only' } } },
};
