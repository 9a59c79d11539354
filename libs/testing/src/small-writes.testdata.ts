import { AGENT_ANNOTATIONS, annotations, GROUP_VERSION } from '@unbounded/crds';
import { EVENT_BOUNDS, MOST_NODE_CONDITIONS, NODE_CONDITION_BOUNDS } from '@unbounded/kube';

import { longestAnnotations, tooLong, usualAnnotations } from './agent-writes.testdata.ts';
import { NAMESPACE } from './chart.ts';
import {
  AGENT,
  type Allowed,
  annotate,
  CONTROLLERS,
  create,
  event,
  everyone,
  events,
  leases,
  merge,
  node,
  owner,
  poolNode,
  RBAC,
  regarding,
  type Row,
  slice,
  type Who,
} from './stolen-token.testdata.ts';
import { ourPath, type Write } from './write.ts';

/** What a stolen token writes is small: with few writes nobody fills the store of the API server or the memory of its readers. */

/** What the API server itself says. */
export const TOO_LONG = 'can have at most';
/** What the policy takes for invalid, not for forbidden. */
export const VALUE = 'must be 32 bytes in base64';

const SOME = 'x';
const LONG = 'x'.repeat(60_000);
const of = (length: number): string => 'x'.repeat(length);

const told = (who: Who, more: object = {}, about: object = regarding.node('mine')): Write => event(who, about, more);
const marked = (marks: object) => ({ metadata: { name: 'mine.0ae', namespace: 'default', ...marks } });
const named = (name: string): Write => told(AGENT, { metadata: { name, namespace: 'default' } });
const fieldsOf = (fieldsV1: object, apiVersion = 'events.k8s.io/v1') => ({
  manager: 'unbounded',
  operation: 'Update',
  apiVersion,
  time: '2026-01-01T00:00:00Z',
  fieldsType: 'FieldsV1',
  fieldsV1,
});
const coreEvent = (more: object): Write =>
  create('/api/v1/namespaces/default/events', {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: 'e-core', namespace: 'default' },
    involvedObject: regarding.node('mine'),
    reason: 'R',
    message: 'm',
    type: 'Normal',
    reportingComponent: `unbounded/${AGENT}`,
    reportingInstance: 'i',
    action: 'A',
    ...more,
  });

const conditions = (...some: readonly object[]): Write =>
  merge('/api/v1/nodes/mine/status', { status: { conditions: some } });
const condition = (type: string, more: object = {}) => ({ type, status: 'False', reason: 'R', message: '', ...more });
const longest = (type: string) =>
  condition(type, { reason: of(NODE_CONDITION_BOUNDS.reason), message: of(NODE_CONDITION_BOUNDS.message) });
const numbered = (count: number): object[] =>
  Array.from({ length: count }, (_, index) => condition(`UnboundedTest${index}`));
const ownStatus = (status: object): Write => merge(ourPath('gatewaypoolnodes', 'mine', 'status'), { status });
const route = { type: 'PodCidr', source: of(253) };
const holder = (who: Who, holderIdentity: string, marks: object = {}): Write =>
  create(leases(), {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name: who, namespace: NAMESPACE, ...marks },
    spec: { holderIdentity },
  });

const longestEvent = (who: Who): Write =>
  told(
    who,
    {
      reason: of(EVENT_BOUNDS.reason),
      action: of(EVENT_BOUNDS.action),
      reportingInstance: of(EVENT_BOUNDS.reportingInstance),
      note: of(EVENT_BOUNDS.note),
      type: 'Warning',
    },
    { ...regarding.node('mine'), uid: 'mine' },
  );

export const smallAllowed: readonly Allowed[] = [
  ...Object.entries(longestAnnotations).map(([name, value]): Allowed => [
    AGENT,
    `the longest ${name}`,
    node(annotate(name, value)),
  ]),
  ...usualAnnotations.map(([name, value]): Allowed => [
    AGENT,
    `the annotation ${name}=${value}`,
    node(annotate(name, value)),
  ]),
  ...Object.keys(AGENT_ANNOTATIONS).map((name): Allowed => [AGENT, `no ${name}`, node(annotate(name, null))]),
  [AGENT, 'its first Event by name', named('mine.000')],
  [AGENT, 'its last Event by name', named('mine.fff')],
  [AGENT, 'all of its annotations at once', node({ metadata: { annotations: longestAnnotations } })],
  [AGENT, 'the longest conditions', conditions(longest('NetworkUnavailable'), longest(`Unbounded${of(55)}`))],
  [AGENT, 'as many conditions as it may have', conditions(...numbered(MOST_NODE_CONDITIONS))],
  [AGENT, 'routes to blocks', ownStatus({ routes: { '2001:db8:1234:5678:9abc:def0:1234:5678/128': route } })],
  ['site-membership', 'its longest condition', conditions(longest('UnboundedNodeAccepted'))],
  ...everyone.map((who): Allowed => [who, 'the longest Event', longestEvent(who)]),
  ...CONTROLLERS.map((who): Allowed => [who, 'the Lease of a long name', holder(who, of(512))]),
];

const longAnnotations = Object.keys(longestAnnotations).flatMap((name): Row[] => [
  [AGENT, `60 kB in ${name}`, node(annotate(name, LONG)), VALUE],
  [AGENT, `one character too much in ${name}`, node(annotate(name, tooLong(name))), VALUE],
]);

const onlyListed = 'that it writes itself (wg-pubkey';
const ofAgents: readonly Row[] = [
  ...longAnnotations,
  [AGENT, 'another annotation of our prefix', node(annotate('net.unbounded-cloud.io/later', SOME)), onlyListed],
  [
    AGENT,
    'the same by way of the status',
    node(annotate('net.unbounded-cloud.io/later', SOME), 'mine', 'status'),
    onlyListed,
  ],
  [AGENT, 'a request for a new key', node(annotate(annotations.rotateWireGuardKey, SOME)), onlyListed],
  [
    AGENT,
    'no request for a new key, where there is one',
    node(annotate(annotations.rotateWireGuardKey, null)),
    onlyListed,
  ],
  [AGENT, 'a core/v1 Event', coreEvent({}), RBAC],
  ...['mine', 'mine.1000', 'mine.00g', 'mine.a.000', 'mine.0af0', 'other.000', 'mine000'].map((name): Row => [
    AGENT,
    `an Event of the name ${name}`,
    named(name),
    'may write only Events of the names mine.000 to mine.fff',
  ]),
  ...(['type', 'reason', 'message'] as const).map((field): Row => [
    AGENT,
    `a condition with a long ${field}`,
    conditions(condition('UnboundedX', { [field]: `Unbounded${LONG}` })),
    'may have at most 16 conditions',
  ]),
  [
    AGENT,
    'one condition too much',
    conditions(...numbered(MOST_NODE_CONDITIONS + 1)),
    'may have at most 16 conditions',
  ],
  [AGENT, 'a route to a long text', ownStatus({ routes: { [LONG]: { type: 'PodCidr' } } }), 'only routes to blocks'],
  [
    AGENT,
    'conditions of its GatewayPoolNode',
    ownStatus({ conditions: [{ ...condition('A'), lastTransitionTime: '2026-01-01T00:00:00Z' }] }),
    'and no conditions',
  ],
];

/** The API server bounds these itself. */
const longTexts = (who: Who): Row[] =>
  Object.entries(EVENT_BOUNDS).map(([field, most]) => [
    who,
    `an Event with a long ${field}`,
    told(who, { [field]: of(most + 1) }),
    TOO_LONG,
  ]);
const NAMED = 'that name their object by';

const ofEverybody = (who: Who): Row[] => [
  [who, 'an Event with annotations', told(who, marked({ annotations: { a: LONG } })), 'without labels, annotations'],
  [who, 'an Event with labels', told(who, marked({ labels: { a: 'b' } })), 'without labels, annotations'],
  [
    who,
    'an Event with an owner',
    told(who, marked({ ownerReferences: [owner('Node', LONG, 'v1')] })),
    'owners and finalizers',
  ],
  [who, 'an Event that stays', told(who, marked({ finalizers: ['example.com/a'] })), 'owners and finalizers'],
  [
    who,
    'an Event that gets annotations',
    merge(`${events()}/of-${who === AGENT ? 'mine' : who}`, { metadata: { annotations: { a: LONG } } }),
    'without labels, annotations',
  ],
  [
    who,
    'an Event whose managedFields are long',
    told(
      who,
      marked({ managedFields: [fieldsOf({ 'f:note': {}, 'f:metadata': { 'f:annotations': { [`f:${LONG}`]: {} } } })] }),
    ),
    'whose managedFields name their fields',
  ],
  ...longTexts(who),
  [who, 'an Event about a long part', told(who, {}, { ...regarding.node('mine'), fieldPath: LONG }), NAMED],
  [who, 'an Event about a long version', told(who, {}, { ...regarding.node('mine'), resourceVersion: LONG }), NAMED],
  [who, 'an Event about a long uid', told(who, {}, { ...regarding.node('mine'), uid: LONG }), NAMED],
];

const ofControllers = CONTROLLERS.flatMap((who): Row[] => [
  [who, 'an Event about a long kind', told(who, {}, { apiVersion: GROUP_VERSION, kind: LONG, name: 'x' }), NAMED],
  [
    who,
    'a Lease with annotations',
    holder(who, SOME, { annotations: { a: LONG } }),
    'may write a Lease without labels',
  ],
  [who, 'a Lease of a long holder', holder(who, LONG), 'may write a Lease without labels'],
]);

export const smallForbidden: readonly Row[] = [
  ...ofAgents,
  ...everyone.flatMap(ofEverybody),
  ...ofControllers,
  [
    'site-membership',
    'a long condition',
    conditions(condition('UnboundedNodeAccepted', { message: LONG })),
    'at most 4096',
  ],
  [
    'site-membership',
    'a slice with annotations',
    create(ourPath('sitenodeslices'), slice({ metadata: { name: 'a-0', annotations: { a: LONG } } })),
    'only slices without annotations',
  ],
  [
    'gateway-health',
    'a GatewayPoolNode with annotations',
    create(ourPath('gatewaypoolnodes'), poolNode('other', { metadata: { name: 'other', annotations: { a: LONG } } })),
    'only GatewayPoolNodes without annotations',
  ],
  ['gateway-health', 'a long port', node(annotate(annotations.wireGuardPort, '1'.repeat(60_000))), 'only a UDP port'],
];

/** Of core/v1 the API server bounds nothing: the policy refuses them, also where a role of the cluster lets an account write them. */
export const coreEvents: readonly (readonly [what: string, write: Write])[] = [
  ['that are small', coreEvent({})],
  ['with annotations', coreEvent(marked({ annotations: { a: LONG } }))],
  ['with labels', coreEvent(marked({ labels: { a: 'b' } }))],
  ['with a long message', coreEvent({ message: LONG })],
  ['with a long source', coreEvent({ source: { component: LONG } })],
];
