import type { Mesh, RelaySpec } from '@unbounded/crds';
import type { Deployment } from '@unbounded/kube';
import { describe, expect, test } from 'vitest';

import { planRelayConditions, type RelaySeen } from './relay-conditions.plan.ts';
import {
  isOurs,
  linksSecret,
  managedRelay,
  planDeployment,
  planDisruptionBudget,
  planNetworkPolicy,
  planServices,
  relayUse,
} from './relay.plan.ts';

const meshOf = (relay: RelaySpec | undefined, name = 'default'): Mesh => ({
  apiVersion: 'net.unbounded-cloud.io/v1alpha1',
  kind: 'Mesh',
  metadata: { name, uid: 'uid-of-mesh', generation: 3 },
  spec: relay === undefined ? {} : { relay },
});
const managed = (block: NonNullable<RelaySpec['managed']> = {}, mode?: RelaySpec['mode']): Mesh =>
  meshOf({ provider: 'managed', managed: block, ...(mode ? { mode } : {}) });
const external = meshOf({ provider: 'external', external: { endpoint: 'relay.example.com:3478' }, managed: {} });
const place = (mesh: Mesh, ...publicNodes: string[]) => ({ mesh, namespace: 'net', publicNodes });
const image = { image: 'registry/unbounded:1', pullPolicy: 'IfNotPresent', pullSecrets: [] };

describe('a relay is run', () => {
  test.each([
    ['for a managed one', managed(), true],
    ['not for one elsewhere', external, false],
    ['not in mode never', managed({}, 'never'), false],
    ['not for a Mesh without one', meshOf(undefined), false],
  ])('%s', (_, mesh, isRun) => expect(managedRelay(mesh) !== undefined).toBe(isRun));
});

describe('what a relay that is not ours gets from us', () => {
  const deployment = (volumes: object[], labels = {}) =>
    ({ metadata: { labels }, spec: { template: { spec: { volumes } } } }) as unknown as Deployment;
  const links = { name: 'a', secret: { secretName: 'relay-links' } };
  const keys = { name: 'b', configMap: { name: 'relay-keys' } };
  test.each<[string, Mesh | undefined, Deployment | undefined, object]>([
    ['nothing where there is none', undefined, undefined, { isManaged: false, listed: false, linked: false }],
    ['what it mounts', external, deployment([links, keys]), { isManaged: false, listed: true, linked: true }],
    ['no list when it mounts none', undefined, deployment([links]), { listed: false, linked: true }],
    [
      'nothing when its Secret is another',
      undefined,
      deployment([{ name: 'a', secret: { secretName: 'x' } }]),
      { linked: false },
    ],
    [
      'our own has it from the Mesh',
      managed(),
      deployment([links, keys], { 'app.kubernetes.io/managed-by': 'gateway-health' }),
      { isManaged: true, listed: true, linked: false },
    ],
  ])('%s', (_, mesh, found, expected) => expect(relayUse(mesh, found)).toMatchObject(expected));
});

describe('the Deployment', () => {
  const { spec } = planDeployment(place(managed({ replicas: 3 })), image);

  test('has as many replicas as asked for, spread, and never one fewer during a change', () => {
    expect(spec).toMatchObject({
      replicas: 3,
      strategy: { rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
      template: { spec: { topologySpreadConstraints: [{ topologyKey: 'kubernetes.io/hostname' }] } },
    });
  });

  test('serves the cluster’s keys, with a proof, each with a rate, and nobody else', () => {
    const { containers, volumes } = spec.template.spec;
    expect(containers[0]!.args).toEqual(
      expect.arrayContaining([
        '--auth=require',
        '--allowed-keys=/etc/relay/keys/keys',
        expect.stringMatching(/^--max-bytes-per-second=[1-9]/),
      ]),
    );
    expect(volumes).toContainEqual({ name: 'keys', configMap: { name: 'relay-keys' } });
  });

  test('has a certificate and a key of its own where the Mesh names them, and not otherwise', () => {
    const known = meshOf({
      provider: 'managed',
      managed: { tls: { serverName: 'relay.example.com' } },
      staticKey: Buffer.alloc(32, 7).toString('base64'),
    });
    const { containers, volumes } = planDeployment(place(known), image).spec.template.spec;
    expect(containers[0]!.args).toEqual(
      expect.arrayContaining([
        '--tls-cert=/etc/relay/tls/tls.crt',
        '--tls-key=/etc/relay/tls/tls.key',
        '--key-file=/etc/relay/key/key',
      ]),
    );
    const secrets = volumes.flatMap((volume) => ('secret' in volume ? [volume.secret.secretName] : []));
    expect(secrets).toEqual(['relay-links', 'relay-static-key', 'relay-tls']);
    expect(containers[0]!.volumeMounts.map(({ name }) => name)).toEqual(volumes.map(({ name }) => name));
    expect(JSON.stringify(spec)).not.toMatch(/tls|key-file/);
  });

  test('gives a pod longer to end than its clients need to leave', () => {
    const { terminationGracePeriodSeconds, containers } = spec.template.spec;
    const [relay] = containers;
    expect(relay!.lifecycle.preStop.sleep.seconds).toBeGreaterThan(relay!.readinessProbe.periodSeconds);
    const drain = Number(/--drain-time=(\d+)s/.exec(relay!.args.join(' '))?.[1]);
    expect(terminationGracePeriodSeconds).toBeGreaterThan(relay!.lifecycle.preStop.sleep.seconds + drain);
  });

  test('runs the image of the installation, and its replicas know each other by the headless Service', () => {
    const [relay] = spec.template.spec.containers;
    expect(relay).toMatchObject({ image: 'registry/unbounded:1', imagePullPolicy: 'IfNotPresent' });
    expect(relay!.args).toContain('--link-peers=relay-headless.net.svc:3479');
  });

  test('has no links where clients come by node ports, and so to every replica', () => {
    const pod = planDeployment(place(managed({ serviceType: 'NodePort' })), image).spec.template.spec;
    expect(pod.containers[0]!.args.join(' ')).not.toContain('--link');
  });
});

describe('the Services', () => {
  test('lead from the port that is asked for to the relay’s own, which needs no privilege', () => {
    const [headless, outside] = planServices(place(managed({ port: 443 })));
    expect(outside.spec).toMatchObject({
      type: 'LoadBalancer',
      externalTrafficPolicy: 'Local',
      ports: [{ port: 443, targetPort: 'relay' }],
    });
    expect(headless.spec).toMatchObject({ clusterIP: 'None', publishNotReadyAddresses: true });
    const [relay] = planDeployment(place(managed({ port: 443 })), image).spec.template.spec.containers;
    expect(relay!.ports).toContainEqual({ name: 'relay', containerPort: 3478 });
  });

  test('whatever comes in stays on the node: elsewhere it would need the mesh', () => {
    for (const serviceType of ['NodePort', 'LoadBalancer'] as const)
      expect(planServices(place(managed({ serviceType })))[1].spec).toMatchObject({
        type: serviceType,
        externalTrafficPolicy: 'Local',
      });
  });
});

describe('who may come to the pods', () => {
  const { spec } = planNetworkPolicy(place(managed()));
  const { labels } = planDeployment(place(managed()), image).spec.template.metadata;
  const [relay] = planDeployment(place(managed()), image).spec.template.spec.containers;
  const portOf = (name: string) => relay!.ports.find((port) => port.name === name)!.containerPort;

  test('anybody to the ports of clients and of monitoring', () => {
    const open = spec.ingress.filter((rule) => !('from' in rule)).flatMap(({ ports }) => ports.map(({ port }) => port));
    expect(open).toEqual([portOf('relay'), portOf('health')]);
  });

  test('replicas alone to the port of links', () => {
    expect(spec.podSelector.matchLabels).toEqual(labels);
    expect(spec.ingress.filter((rule) => 'from' in rule)).toEqual([
      { from: [{ podSelector: { matchLabels: labels } }], ports: [{ protocol: 'TCP', port: portOf('links') }] },
    ]);
  });
});

test('draining nodes takes one replica at a time', () => {
  const { labels } = planDeployment(place(managed()), image).spec.template.metadata;
  expect(planDisruptionBudget(place(managed({ replicas: 3 }))).spec).toEqual({
    maxUnavailable: 1,
    unhealthyPodEvictionPolicy: 'AlwaysAllow',
    selector: { matchLabels: labels },
  });
});

describe('relays stand on gateways that can be called from outside', () => {
  const podOf = (serviceType: 'NodePort' | 'LoadBalancer', ...nodes: string[]) =>
    planDeployment(place(managed({ serviceType }), ...nodes), image).spec.template.spec;
  // By name: a label of theirs another node could have, too.
  const terms = ['g1', 'g2'].map((name) => ({
    matchFields: [{ key: 'metadata.name', operator: 'In', values: [name] }],
  }));

  test('by a node port nowhere else', () => {
    const required = { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: terms } };
    expect(podOf('NodePort', 'g2', 'g1')).toMatchObject({ affinity: { nodeAffinity: required } });
  });

  test('behind a balancer if they can', () => {
    const preferred = {
      preferredDuringSchedulingIgnoredDuringExecution: terms.map((preference) => ({ weight: 100, preference })),
    };
    expect(podOf('LoadBalancer', 'g1', 'g2')).toMatchObject({
      affinity: { nodeAffinity: preferred },
      tolerations: [{ key: 'net.unbounded-cloud.io/gateway-node', operator: 'Exists' }],
    });
  });

  test('behind a balancer in one site if they can: to know of each other’s clients they would need the mesh', () => {
    const podAffinityTerm = {
      topologyKey: 'net.unbounded-cloud.io/site',
      labelSelector: { matchLabels: { 'app.kubernetes.io/name': 'relay' } },
    };
    const podAffinity = { preferredDuringSchedulingIgnoredDuringExecution: [{ podAffinityTerm }] };
    expect(podOf('LoadBalancer', 'g1')).toMatchObject({ affinity: { podAffinity } });
    expect(podOf('NodePort', 'g1')).not.toHaveProperty('affinity.podAffinity');
  });

  describe('where they stand, another set of gateways starts them anew only when it must:', () => {
    type Kind = 'NodePort' | 'LoadBalancer';
    const of = (serviceType: Kind, nodes: string[], standing?: Deployment) =>
      planDeployment(place(managed({ serviceType, replicas: 2 }), ...nodes), image, standing);
    const NOT: string[] = [];
    test.each<[string, Kind, string[], string[], boolean]>([
      ['another one is there', 'LoadBalancer', ['g1', 'g2'], ['g0', 'g1', 'g2'], true],
      ['another one is there', 'NodePort', ['g1', 'g2'], ['g0', 'g1', 'g2'], true],
      ['one of more than there are replicas is gone', 'LoadBalancer', ['g1', 'g2', 'g3'], ['g1', 'g3'], true],
      ['one to which a node port leads is gone', 'NodePort', ['g1', 'g2', 'g3'], ['g1', 'g3'], false],
      ['too few are left', 'LoadBalancer', ['g1', 'g2'], ['g1', 'g3'], false],
      ['another one has room for a replica', 'NodePort', ['g1'], ['g1', 'g2'], false],
      ['all are gone, as when the status of pools is lost', 'LoadBalancer', ['g1', 'g2'], NOT, true],
      ['all are gone, as when the status of pools is lost', 'NodePort', ['g1', 'g2'], NOT, true],
      ['none was there', 'NodePort', NOT, ['g1'], false],
    ])('%s (%s)', (_, serviceType, before, after, isKept) => {
      const standing = of(serviceType, before) as Deployment;
      expect(of(serviceType, after, standing)).toEqual(isKept ? standing : of(serviceType, after));
    });

    test('what an operator requires of nodes is not taken for it', () => {
      const standing = of('LoadBalancer', ['g1', 'g2']);
      const affinity = of('NodePort', ['g9', 'g8']).spec.template.spec.affinity;
      const template = { spec: { ...standing.spec.template.spec, affinity } };
      const changed = { ...standing, spec: { ...standing.spec, template } } as Deployment;
      expect(of('LoadBalancer', ['g1', 'g2'], changed)).toEqual(standing);
    });
  });

  test('by a node port no more than one on each', () => {
    const of = (serviceType: 'NodePort' | 'LoadBalancer', ...nodes: string[]) =>
      planDeployment(place(managed({ replicas: 3, serviceType }), ...nodes), image).spec.replicas;
    expect([of('NodePort'), of('NodePort', 'g1', 'g2'), of('LoadBalancer', 'g1', 'g2')]).toEqual([1, 2, 3]);
  });

  test('anywhere, while there is no such gateway', () => expect(podOf('NodePort')).not.toHaveProperty('affinity'));
});

test('every object is ours by its label, and goes with the Mesh', () => {
  const all = [
    linksSecret(place(managed()), 'x'),
    ...planServices(place(managed())),
    planDeployment(place(managed()), image),
    planNetworkPolicy(place(managed())),
    planDisruptionBudget(place(managed())),
  ];
  for (const object of all) {
    expect(isOurs(object)).toBe(true);
    expect(object.metadata.ownerReferences).toEqual([expect.objectContaining({ kind: 'Mesh', uid: 'uid-of-mesh' })]);
  }
  expect(isOurs({ metadata: { labels: { 'app.kubernetes.io/managed-by': 'Helm' } } })).toBe(false);
});

describe('RelayReady', () => {
  const seen: RelaySeen = { foreign: [], endpoints: ['203.0.113.5:3478'], availableReplicas: 1 };
  test.each<[string, Mesh, RelaySeen | undefined, string, string]>([
    ['available', managed(), seen, 'True Available', 'at 203.0.113.5:3478; 1 of 1 replicas are available'],
    [
      'no replica',
      managed({ replicas: 2 }),
      { ...seen, availableReplicas: 0 },
      'False NotAvailable',
      '0 of 2 replicas',
    ],
    ['no balancer', managed(), { ...seen, endpoints: [] }, 'False NoAddress', 'externalIPs or serviceType: NodePort'],
    [
      'no public node',
      managed({ serviceType: 'NodePort' }),
      { ...seen, endpoints: [] },
      'False NoAddress',
      'no gateway has an external address',
    ],
    [
      'foreign',
      managed(),
      { ...seen, foreign: ['Service net/relay'] },
      'False NameConflict',
      'Service net/relay was made',
    ],
    [
      'a foreign guard',
      managed(),
      { ...seen, leftAlone: ['NetworkPolicy net/relay'] },
      'True Available',
      "1 of 1 replicas are available; NetworkPolicy net/relay: somebody else's, and left alone",
    ],
    [
      'a write that is refused',
      managed(),
      { ...seen, refused: ['Deployment net/relay: denied request: no'] },
      'False Refused',
      'refuses what the relay needs, Deployment net/relay: denied request: no: correct the policy, webhook or quota',
    ],
    ['no image', managed(), { ...seen, obstacle: 'without --relay-image' }, 'False NoImage', '--relay-image'],
    ['elsewhere', external, undefined, 'Unknown External', 'not run here'],
    ['never', managed({}, 'never'), undefined, 'Unknown Never', 'mode: never'],
    [
      'another Mesh',
      meshOf(managed().spec.relay, 'other'),
      undefined,
      'False Ignored',
      'only the Mesh named "default"',
    ],
  ])('%s', (_, mesh, what, verdict, message) => {
    const [condition] = planRelayConditions(mesh, what);
    expect(`${condition?.status} ${condition?.reason}`).toBe(verdict);
    expect(condition).toMatchObject({
      type: 'RelayReady',
      observedGeneration: 3,
      message: expect.stringContaining(message),
    });
  });

  test('is said of no Mesh that never had a relay, and taken back of one that had', () => {
    expect(planRelayConditions(meshOf(undefined), undefined)).toEqual([]);
    const [condition] = planRelayConditions(managed(), seen);
    const before = { ...condition!, lastTransitionTime: '2026-01-01T00:00:00Z' };
    const had: Mesh = { ...meshOf(undefined), status: { conditions: [before] } };
    expect(planRelayConditions(had, undefined)).toMatchObject([{ status: 'Unknown', reason: 'NoRelay' }]);
  });
});
