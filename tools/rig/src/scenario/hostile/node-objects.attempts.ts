import { annotations, GROUP_VERSION, labels } from '@unbounded/crds';
import type { LabLayout, LabNode } from '../../layout/layout.ts';
import { NAMESPACE } from '../../apps/tokens.ts';
import { attendAgain, leaveUnattended } from '../../substrate/cluster/unattended.ts';
import type { Attempt } from './attempts.ts';
import { expectCondition } from './evidence.ts';
import { expectRefused, expectTaken, type Identity, MERGE } from './identity.ts';
import { poolName } from '../../substrate/site-objects.ts';

/** What root on a worker tries at the API server, by the token of the node's agent and by the kubelet's certificate. */

export interface Targets {
  readonly layout: LabLayout;
  /** The node whose root is hostile. */
  readonly hostile: LabNode;
  /** Another worker of its site. */
  readonly neighbour: LabNode;
  /** The gateway of its own site, and that of another. */
  readonly gateway: LabNode;
  readonly farGateway: LabNode;
  readonly farWorker: LabNode;
  /** Published keys by node. */
  readonly keys: ReadonlyMap<string, string>;
  readonly agent: Identity;
  readonly kubelet: Identity;
}

/** Of a node that states too many things in a row only some are taken up; the rest waits, and the Node says so. */
const orDamped = (says: RegExp): RegExp => new RegExp(`FactsDamped|${says.source}`, says.flags);

const group = `/apis/${GROUP_VERSION}`;
const nodePath = (name: string): string => `/api/v1/nodes/${name}`;

/** The annotation is written; what it says must not be believed, and somebody must say so. */
const published = (
  { layout, hostile, agent, keys }: Targets,
  name: string,
  notes: Readonly<Record<string, string | null>>,
  says: RegExp,
): Attempt => ({
  name,
  expected: 'reported',
  async run() {
    const answer = await agent.ask('PATCH', nodePath(hostile.name), { metadata: { annotations: notes } }, MERGE);
    // Admission may refuse what the field can not hold; a copy of somebody else's good value it can not know.
    if (answer.status >= 400) return expectRefused(answer);
    return await expectCondition(layout, `node ${hostile.name}`, orDamped(says));
  },
  async undo() {
    const own = {
      [annotations.wireGuardPublicKey]: keys.get(hostile.name)!,
      [annotations.wireGuardNextPublicKey]: null,
      [annotations.wireGuardKeyGeneration]: null,
      [annotations.tunnelProtocols]: 'IPIP,None,VXLAN,WireGuard',
    };
    expectTaken(await agent.ask('PATCH', nodePath(hostile.name), { metadata: { annotations: own } }, MERGE));
  },
});

const refused = (by: Identity, name: string, [method, path, body, contentType]: Call): Attempt => ({
  name,
  expected: 'rejected',
  run: async () => expectRefused(await by.ask(method, path, body, contentType)),
});

const keyOf = ({ keys }: Targets, node: LabNode): string => keys.get(node.name)!;

/** Annotations that the agent may write, with values that are not its own, or none at all. */
export const annotationAttempts = (targets: Targets): Attempt[] => {
  const key = (name: string, value: string, says: RegExp): Attempt =>
    published(targets, name, { [annotations.wireGuardPublicKey]: value }, says);
  const next = (name: string, value: string): Attempt =>
    published(
      targets,
      name,
      { [annotations.wireGuardNextPublicKey]: value, [annotations.wireGuardKeyGeneration]: '1' },
      /Accepted=False.*(Taken|Invalid)/,
    );
  const malformed = /Accepted=False.*(Invalid|Unknown)/;
  const duplicate = /Accepted=False.*Taken/;
  return [
    key('a word as WireGuard key', 'x', malformed),
    key('a key of 65 characters', 'A'.repeat(65), malformed),
    key('a key of 200,000 characters', 'A'.repeat(200_000), malformed),
    key('the key of all zeros', `${'A'.repeat(43)}=`, malformed),
    key('a key with line breaks and quotes', '"\n]}{"\'; --', malformed),
    key('the key of the gateway of its site', keyOf(targets, targets.gateway), duplicate),
    key('the key of a gateway of another site', keyOf(targets, targets.farGateway), duplicate),
    key('the key of its neighbour', keyOf(targets, targets.neighbour), duplicate),
    next('the key of another site’s gateway as its next key', keyOf(targets, targets.farGateway)),
    next('a word as its next key', 'next'),
    published(
      targets,
      'tunnel protocols that nobody knows, each long',
      {
        [annotations.tunnelProtocols]: Array.from({ length: 40 }, (_, index) => `${'P'.repeat(40)}${index}`).join(','),
      },
      malformed,
    ),
    published(
      targets,
      'a key generation out of all bounds',
      { [annotations.wireGuardKeyGeneration]: '9'.repeat(30) },
      malformed,
    ),
  ];
};

type Call = readonly [method: string, path: string, body?: object, contentType?: string];

const note = { metadata: { annotations: { [annotations.wireGuardPublicKey]: 'x' } } };
const event = (node: string): object => ({
  apiVersion: 'events.k8s.io/v1',
  kind: 'Event',
  metadata: { name: `forged-${Date.now()}`, namespace: 'default' },
  eventTime: new Date().toISOString().replace('Z', '000Z'),
  reportingController: 'unbounded/node-dataplane',
  reportingInstance: node,
  action: 'Forge',
  reason: 'Forged',
  type: 'Warning',
  regarding: { apiVersion: 'v1', kind: 'Node', name: node },
});

/** Fields of its own Node that are not the agent's. */
const ownNodeCalls = ({ hostile }: Targets): Record<string, Call> => {
  const own = (patch: object): Call => ['PATCH', nodePath(hostile.name), patch, MERGE];
  return {
    'its own site label': own({ metadata: { labels: { [labels.site]: 's2' } } }),
    'the label that selects gateways, by the agent': own({
      metadata: { labels: { 'node-restriction.kubernetes.io/gateway-of': 's1' } },
    }),
    'an external address of its own': own({
      metadata: { annotations: { 'net.unbounded-cloud.io/external-address': '203.0.113.7' } },
    }),
    'its own pod CIDRs': own({ spec: { podCIDR: '100.66.0.0/17', podCIDRs: ['100.66.0.0/17'] } }),
    'that its node takes no pods': own({ spec: { unschedulable: true } }),
  };
};

/** Our own objects, which only operators and controllers write. */
const ourObjectCalls = ({ farGateway, gateway }: Targets): Record<string, Call> => ({
  'the spec of a Site': ['PATCH', `${group}/sites/s2`, { spec: { tunnelProtocol: 'None' } }, MERGE],
  'a SiteNodeSlice': ['PATCH', `${group}/sitenodeslices/s2-0`, { nodes: [] }, MERGE],
  'the deletion of a SiteNodeSlice': ['DELETE', `${group}/sitenodeslices/s1-0`],
  'the status of a pool': ['PATCH', `${group}/gatewaypools/${poolName('s1')}/status`, { status: { nodes: [] } }, MERGE],
  'a peering of its own': [
    'POST',
    `${group}/sitepeerings`,
    {
      apiVersion: GROUP_VERSION,
      kind: 'SitePeering',
      metadata: { name: 'mine' },
      spec: { sites: ['s1', 's2'], tunnelProtocol: 'None' },
    },
  ],
  'the Mesh': [
    'POST',
    `${group}/meshes`,
    {
      apiVersion: GROUP_VERSION,
      kind: 'Mesh',
      metadata: { name: 'default' },
      spec: { relay: { provider: 'external', external: { endpoint: '203.0.113.250:1' } } },
    },
  ],
  'the GatewayPoolNode of its gateway': ['PATCH', `${group}/gatewaypoolnodes/${gateway.name}`, note, MERGE],
  'the status of another site’s GatewayPoolNode': [
    'PATCH',
    `${group}/gatewaypoolnodes/${farGateway.name}/status`,
    { status: { reachableSites: [] } },
    MERGE,
  ],
  'the deletion of a GatewayPoolNode': ['DELETE', `${group}/gatewaypoolnodes/${farGateway.name}`],
});

/** Objects of others. */
const foreignCalls = ({ neighbour, farGateway }: Targets): Record<string, Call> => ({
  'the annotations of its neighbour': ['PATCH', nodePath(neighbour.name), note, MERGE],
  'the annotations of another site’s gateway': ['PATCH', nodePath(farGateway.name), note, MERGE],
  'an Event about its neighbour': ['POST', '/apis/events.k8s.io/v1/namespaces/default/events', event(neighbour.name)],
  'the Lease of a controller': [
    'PATCH',
    `/apis/coordination.k8s.io/v1/namespaces/${NAMESPACE}/leases/cidr-allocator`,
    { spec: { holderIdentity: 'me' } },
    MERGE,
  ],
  'a Lease in kube-system': [
    'POST',
    '/apis/coordination.k8s.io/v1/namespaces/kube-system/leases',
    { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name: 'mine' } },
  ],
  'the Secrets of our namespace': ['GET', `/api/v1/namespaces/${NAMESPACE}/secrets`],
  'a pod': [
    'POST',
    `/api/v1/namespaces/${NAMESPACE}/pods`,
    {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'mine' },
      spec: { containers: [{ name: 'c', image: 'x' }] },
    },
  ],
  'a token of a controller': [
    'POST',
    `/api/v1/namespaces/${NAMESPACE}/serviceaccounts/cidr-allocator/token`,
    { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} },
  ],
  'the deletion of its neighbour’s Node': ['DELETE', nodePath(neighbour.name)],
});

/** What is not the agent's to write, or to read. */
export const objectAttempts = (targets: Targets): Attempt[] =>
  Object.entries({ ...ownNodeCalls(targets), ...ourObjectCalls(targets), ...foreignCalls(targets) }).map(
    ([name, call]) => refused(targets.agent, name, call),
  );

/** What a kubelet may say of its own Node: its addresses and most labels. */
export const kubeletAttempts = (targets: Targets): Attempt[] => {
  const { layout, hostile, neighbour, farGateway, farWorker, kubelet } = targets;
  const own = hostile.internalIps.map((address) => ({ type: 'InternalIP', address }));
  const claimed = (name: string, addresses: readonly { type: string; address: string }[], says: RegExp): Attempt => ({
    name,
    expected: 'reported',
    async run() {
      leaveUnattended(hostile.name);
      const status = { addresses: [...own, ...addresses, { type: 'Hostname', address: hostile.name }] };
      expectTaken(await kubelet.ask('PATCH', `${nodePath(hostile.name)}/status`, { status }, MERGE));
      return await expectCondition(layout, `node ${hostile.name}`, orDamped(says));
    },
    undo: async () => attendAgain(hostile.name),
  });
  const internal = (...addresses: readonly string[]) => addresses.map((address) => ({ type: 'InternalIP', address }));
  const outside = /Accepted=False.*(Outside|Address)/;
  return [
    claimed('an address of the Internet', internal('8.8.8.8'), outside),
    claimed('the address of its neighbour', internal(...neighbour.internalIps), /Accepted=False.*Taken/),
    claimed('the address of a node of another site', internal(...farWorker.internalIps), outside),
    claimed('the external address of another site’s gateway', internal(...farGateway.external!.ips), outside),
    claimed('the API server’s address', internal(layout.controlPlane.external.ip), outside),
    claimed(
      'forty addresses',
      internal(...Array.from({ length: 40 }, (_, index) => `10.1.7.${index + 1}`)),
      /Accepted=False/,
    ),
    refused(kubelet, 'the label that selects gateways, by the kubelet', [
      'PATCH',
      nodePath(hostile.name),
      { metadata: { labels: { 'node-restriction.kubernetes.io/gateway-of': 's1' } } },
      MERGE,
    ]),
    refused(kubelet, 'other pod CIDRs', [
      'PATCH',
      nodePath(hostile.name),
      { spec: { podCIDR: '100.66.0.0/17', podCIDRs: ['100.66.0.0/17'] } },
      MERGE,
    ]),
    refused(kubelet, 'the annotations of its neighbour, by the kubelet', [
      'PATCH',
      nodePath(neighbour.name),
      { metadata: { annotations: { [annotations.wireGuardPublicKey]: 'x' } } },
      MERGE,
    ]),
  ];
};
