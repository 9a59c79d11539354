import { borrowApiServer } from '@unbounded/testing';
import { NAMESPACE, namespaceFile, renderChart, yamlOf } from '@unbounded/testing/chart';
import { readConfig } from '@unbounded/config';
import { expect, test } from 'vitest';

import { relayOptions } from './relay.config.ts';

const NAMES = /^relay(-headless|-links)?$/;
const render = (values: object = {}) =>
  renderChart({ values: { relay: { enabled: true, ...values } } }).filter(({ metadata }) => NAMES.test(metadata.name));

interface Deployment {
  readonly spec: {
    readonly template: {
      readonly spec: {
        readonly containers: readonly { readonly args: string[] }[];
        readonly terminationGracePeriodSeconds: number;
        readonly securityContext: { readonly sysctls?: readonly object[] };
      };
    };
  };
}

test('the chart runs no relay by itself', () => {
  expect(renderChart().filter(({ metadata }) => NAMES.test(metadata.name))).toEqual([]);
});

test('an API server takes all of the relay’s objects, with every part turned on', async () => {
  await using api = await borrowApiServer();
  api.kubectl('apply', '-f', namespaceFile);
  const objects = render({
    autoscaling: { enabled: true },
    tls: { secretName: 'relay-tls' },
    proxyProtocol: ['10.0.0.0/8', '2001:db8::/32'],
    service: { type: 'NodePort', port: 443, nodePort: 30_478, annotations: { a: 'b' } },
  });
  const applied = api.apply(yamlOf(objects), '--namespace', NAMESPACE, '--validate=strict');
  expect(applied.trim().split('\n')).toHaveLength(objects.length);
  expect(objects.map(({ kind }) => kind).toSorted()).toEqual([
    'Deployment',
    'HorizontalPodAutoscaler',
    'NetworkPolicy',
    'PodDisruptionBudget',
    'Service',
    'Service',
    'ServiceAccount',
  ]);
});

test('the flags of the pod are flags of the program', () => {
  const deployment = render({
    tls: { secretName: 't' },
    staticKey: { secretName: 'k' },
    proxyProtocol: ['192.0.2.1'],
  }).find(({ kind }) => kind === 'Deployment') as unknown as Deployment;
  const args = deployment.spec.template.spec.containers[0]!.args;
  const argv = args.slice(args.findIndex((arg) => arg.endsWith('main.mjs')) + 1);
  expect(readConfig(relayOptions, { argv, env: {} })).toMatchObject({
    addr: { port: 3478 },
    auth: 'require',
    allowedKeys: '/etc/relay/keys/keys',
    keyFile: '/etc/relay/key/key',
    maxBytesPerSecond: 125_000_000,
    linkAddr: { port: 3479 },
    linkPeers: [{ host: `relay-headless.${NAMESPACE}.svc`, port: 3479 }],
    proxyProtocol: ['192.0.2.1'],
    drainTime: 10_000,
    healthPort: 9994,
  });
});

const podOf = (values: object) =>
  (render(values).find(({ kind }) => kind === 'Deployment') as unknown as Deployment).spec.template.spec;

test.each([
  ['10s', 60],
  ['999ms', 60],
  ['50001ms', 61],
  ['99s', 109],
  ['5m', 310],
])('with a drain of %s a pod has %d s to end', (drainTime, seconds) => {
  expect(podOf({ drainTime }).terminationGracePeriodSeconds).toBe(seconds);
});

test('at a port below 1024 the pod’s network lets it listen, and nobody else’s', () => {
  expect(podOf({}).securityContext.sysctls).toBeUndefined();
  const { securityContext } = podOf({ service: { port: 443 } });
  expect(securityContext.sysctls).toEqual([{ name: 'net.ipv4.ip_unprivileged_port_start', value: '443' }]);
  expect(podOf({ hostNetwork: true, service: { port: 1024 } }).securityContext.sysctls).toBeUndefined();
  expect(() => render({ hostNetwork: true, service: { port: 443 } })).toThrow(/relay.hostNetwork: true: .*\(443\)/);
});

test('a value that is misspelt is refused', () => {
  expect(() => render({ replica: 2 })).toThrow(/replica/);
});

test('rendered twice the objects are the same, and no Secret is among them', () => {
  const all = () => yamlOf(renderChart({ values: { relay: { enabled: true, autoscaling: { enabled: true } } } }));
  expect(all()).toBe(all());
  expect(render().map(({ kind }) => kind)).not.toContain('Secret');
});

test('a relay without proofs, or for several clusters, has no list of keys', () => {
  const argsOf = (values: object) =>
    (
      render(values).find(({ kind }) => kind === 'Deployment') as unknown as Deployment
    ).spec.template.spec.containers[0]!.args.join(' ');
  for (const values of [{ auth: 'prefer' }, { allowedKeys: { enabled: false } }])
    expect(argsOf(values)).not.toContain('--allowed-keys');
});
