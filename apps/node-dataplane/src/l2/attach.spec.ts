import { type NetworkEndpoint, podAnnotations } from '@unbounded/crds';
import { ApiError, type Cluster } from '@unbounded/kube';
import { endpoint, network } from '@unbounded/l2/testdata';
import { beforeEach, describe, expect, test } from 'vitest';
import { type AttachParts, createAttaching } from './attach.ts';
import type { WantedEndpoint } from './claims.ts';

const open = network('lan', { namespaceSelector: { matchLabels: { lan: 'yes' } } });
const labelled = { shop: { lan: 'yes' }, other: {} } as Record<string, Record<string, string>>;

const notFound = (name: string): never => {
  throw new ApiError(`GET ${name}`, 404, { reason: 'NotFound' });
};
const cluster = {
  client: ({ plural }: { readonly plural: string }) => ({
    get: async (name: string) =>
      plural === 'namespaces'
        ? { metadata: { name, labels: labelled[name] } }
        : name === 'lan' || name === 'office'
          ? { ...open, metadata: { name } }
          : notFound(name),
  }),
} as unknown as Cluster;

let calls: string[];
let claimed: NetworkEndpoint[];
let parts: AttachParts;
beforeEach(() => {
  calls = [];
  claimed = [];
  parts = {
    cluster,
    claims: {
      async claim({ namespace, pod, asked }: WantedEndpoint) {
        const made = endpoint(claimed.length + 1, 'n1', { network: asked.network, pod, interface: asked.interface });
        const one = { ...made, metadata: { namespace, name: `${pod}.${asked.interface}` } };
        claimed.push(one);
        calls.push(`claim ${one.metadata.name}`);
        return one;
      },
      release: async ({ metadata }) => void calls.push(`release ${metadata.name}`),
    },
    ports: {
      create: async (spec) => void calls.push(`create ${spec.interface} ${spec.mtuBytes}`),
      remove: async () => void calls.push('remove'),
      stateOf: async () => 'gone',
      [Symbol.dispose]: () => undefined,
    },
    hasSuccessor: () => false,
    endpointsOf: () => [],
    takenIn: async () => [],
    mtuOf: () => 1366,
    isInForce: () => true,
    namesakeOf: () => undefined,
    until: async (condition) => {
      if (!condition()) throw new Error('not in time');
    },
    trigger: () => undefined,
  };
});

type Added = Parameters<ReturnType<typeof createAttaching>['handlers']['add']>[0];
const pod = (networks: string | undefined, more: Partial<Added> = {}): Added => ({
  ...{ namespace: 'shop', name: 'web', uid: 'u1', containerId: 'c1', netns: '/run/netns/web', interface: 'eth0' },
  ...{ hostVeth: undefined, addresses: [] },
  annotations: async () => (networks === undefined ? {} : { [podAnnotations.networks]: networks }),
  ...more,
});
const add = (one: Added) => createAttaching(parts).handlers.add(one, new AbortController().signal);

describe('a pod', () => {
  test('without the annotation has nothing to do with Networks', async () => {
    expect(await add(pod(undefined))).toBeUndefined();
    expect(calls).toEqual([]);
  });

  test('gets an interface for each Network, in their order, and the plugin is told their addresses', async () => {
    const addition = (await add(pod('lan,office@lan0')))!;
    expect(calls).toEqual(['claim web.net1', 'create net1 1366', 'claim web.lan0', 'create lan0 1366']);
    expect(addition.interfaces?.map(({ name, mac }) => `${name} ${mac}`)).toEqual([
      'net1 02:00:00:00:00:01',
      'lan0 02:00:00:00:00:02',
    ]);
    expect(addition.ips?.map((ip) => `${ip.interface} ${ip.address}`)).toEqual([
      '0 192.0.2.1/24',
      '0 2001:db8::1/64',
      '1 192.0.2.2/24',
      '1 2001:db8::2/64',
    ]);
    expect(addition.settle?.map(({ name }) => name)).toEqual(['net1', 'lan0']);
  });

  test('by a configuration of its own gets that interface alone, with what the runtime says of it', async () => {
    const joins = { configuration: 'lan', network: 'lan', mac: '02:00:00:00:00:09', ips: ['192.0.2.9/24'] };
    const wanted: unknown[] = [];
    const before = parts.claims;
    parts = {
      ...parts,
      claims: { ...before, claim: (one, signal) => (wanted.push(one.asked), before.claim(one, signal)) },
    };
    await add(pod('office', { joins, interface: 'eth0' }));
    expect(wanted).toEqual([{ network: 'lan', interface: 'eth0', mac: '02:00:00:00:00:09', addresses: ['192.0.2.9'] }]);
  });

  test.each<[what: string, one: Added, says: string]>([
    ['of a namespace that is not selected', pod('lan', { namespace: 'other' }), 'does not select namespace "other"'],
    ['that names a Network that is none', pod('lans'), 'there is no Network "lans"'],
    ['with an annotation that cannot be read', pod('lan@a@b'), 'must be NETWORK or NETWORK@INTERFACE'],
    ['without a UID', pod('lan', { uid: '' }), 'CNI_ARGS has no K8S_POD_UID'],
    [
      'of a configuration with another interface than can be',
      pod(undefined, { joins: { configuration: 'lan', network: 'lan' }, interface: 'lo' }),
      'CNI configuration "lan".interface is "lo"',
    ],
    [
      'of a configuration whose network is no name',
      pod(undefined, { joins: { configuration: 'lan', network: 7 }, interface: 'lan0' }),
      'CNI configuration "lan".network is 7: must be the name of a Network',
    ],
  ])('%s is refused, and nothing is made', async (_, one, says) => {
    await expect(add(one)).rejects.toThrow(says);
    expect(calls).toEqual([]);
  });

  test('whose port would have the name of another’s is refused, and nothing is made', async () => {
    parts = { ...parts, namesakeOf: (key) => (key === 'shop/web.net1' ? 'bank/db.net1' : undefined) };
    await expect(add(pod('lan'))).rejects.toThrow(
      'endpoint shop/web.net1 would have the device of endpoint bank/db.net1: give the pod or the interface another name',
    );
    expect(calls).toEqual([]);
  });

  test('whose port is not in force in time is refused, and what was made goes', async () => {
    parts = { ...parts, isInForce: () => false };
    const { handlers } = createAttaching(parts);
    await expect(handlers.add(pod('lan'), new AbortController().signal)).rejects.toThrow('not in time');
    await handlers.remove(pod('lan'), new AbortController().signal);
    expect(calls).toEqual(['claim web.net1', 'create net1 1366', 'remove', 'release web.net1']);
  });

  test('that another container has as well keeps what that one has', async () => {
    parts = { ...parts, hasSuccessor: ({ containerId }) => containerId === 'c1' };
    const { handlers } = createAttaching(parts);
    const signal = new AbortController().signal;
    await handlers.add(pod('lan', { containerId: 'c2' }), signal);
    await handlers.remove(pod('lan'), signal);
    expect(calls).not.toContain('release web.net1');
    await handlers.remove(pod('lan', { containerId: 'c2' }), signal);
    expect(calls).toContain('release web.net1');
  });

  test('that ends after another of its name has come takes nothing of that one', async () => {
    // The cache is behind.
    const { handlers } = createAttaching({ ...parts, endpointsOf: (uid) => (uid === 'u1' ? [left] : []) });
    const signal = new AbortController().signal;
    await handlers.add(pod('lan,office'), signal);
    await handlers.add(pod('lan', { uid: 'u2', containerId: 'c2' }), signal);
    calls = [];
    await handlers.remove(pod('lan,office'), signal);
    expect(calls).toEqual(['remove', 'release web.net2']);
    calls = [];
    await handlers.remove(pod('lan', { uid: 'u2', containerId: 'c2' }), signal);
    expect(calls).toEqual(['remove', 'release web.net1']);
  });

  test('that ends while another of its name is being attached takes nothing of that one', async () => {
    const before = parts.claims;
    const claims = Promise.withResolvers<void>();
    const { handlers } = createAttaching({
      ...parts,
      endpointsOf: (uid) => (uid === 'u1' ? [left] : []),
      claims: { ...before, claim: async (one, signal) => (await claims.promise, before.claim(one, signal)) },
    });
    const signal = new AbortController().signal;
    const added = handlers.add(pod('lan', { uid: 'u2', containerId: 'c2' }), signal);
    await new Promise((resolve) => setImmediate(resolve));
    await handlers.remove(pod('lan'), signal);
    claims.resolve();
    await added;
    expect(calls).toEqual(['claim web.net1', 'create net1 1366']);
  });

  test('is as it was attached only while its port is up', async () => {
    const joins = { configuration: 'lan', network: 'lan' };
    const { handlers } = createAttaching(parts);
    const signal = new AbortController().signal;
    expect(await handlers.check(pod(undefined, { joins, interface: 'lan0' }), signal)).toBe(
      'interface lan0: its port is gone',
    );
    expect(await handlers.check(pod('lan'), signal)).toBeUndefined();
  });
});

const left: NetworkEndpoint = {
  ...endpoint(1, 'n1', { network: 'lan', pod: 'web', interface: 'net1' }),
  metadata: { namespace: 'shop', name: 'web.net1' },
};

describe('an endpoint without a port', () => {
  const signal = new AbortController().signal;

  test('is released', async () => {
    await createAttaching(parts).releaseLeftover(left, signal);
    expect(calls).toEqual(['release web.net1']);
  });

  test('is not, once its pod has its port', async () => {
    parts = { ...parts, ports: { ...parts.ports, stateOf: async () => 'down' } };
    await createAttaching(parts).releaseLeftover(left, signal);
    expect(calls).toEqual([]);
  });

  test('is not while its pod is being attached; a pod that comes while it is released waits for that', async () => {
    const [claims, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const before = parts.claims;
    const attaching = createAttaching({
      ...parts,
      claims: {
        claim: async (one, given) => (await claims.promise, before.claim(one, given)),
        release: async (one, given) => (await released.promise, before.release(one, given)),
      },
    });
    const first = attaching.handlers.add(pod('lan'), signal);
    await new Promise((resolve) => setImmediate(resolve));
    const leftover = attaching.releaseLeftover(left, signal);
    claims.resolve();
    await Promise.all([first, leftover]);
    expect(calls).toEqual(['claim web.net1', 'create net1 1366']);
    calls = [];
    const late = attaching.releaseLeftover(left, signal);
    await new Promise((resolve) => setImmediate(resolve));
    const second = attaching.handlers.add(pod('lan'), signal);
    await new Promise((resolve) => setImmediate(resolve));
    expect(calls).toEqual([]);
    released.resolve();
    await Promise.all([late, second]);
    expect(calls).toEqual(['release web.net1', 'claim web.net1', 'create net1 1366']);
  });
});
