import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  addressOf,
  type BoundaryLab,
  FAMILIES,
  type Family,
  type Host,
  type LabOptions,
  NODE_PORTS,
  openBoundaryLab,
  type Place,
  type Shot,
} from './boundary-lab.testdata.ts';

/** The boundary of the overlay, packet by packet. What a row names is sent once in each family. */

interface Attempt extends Pick<Shot, 'type' | 'bytes' | 'port'> {
  readonly what: string;
  readonly from: Place;
  readonly source: Host | 'ownPod';
  readonly to: Host | 'ownPod' | 'node' | 'external';
}

/** Which labs there are: both roles, both data paths, tunnels and native routing. */
const LABS: readonly LabOptions[] = [
  { role: 'worker', protocol: 'VXLAN', dataplane: 'ebpf' },
  { role: 'gateway', protocol: 'WireGuard', dataplane: 'netlink' },
  { role: 'worker', protocol: 'None', dataplane: 'netlink' },
  { role: 'gateway', protocol: 'None', dataplane: 'ebpf' },
].map((one) => ({ ...one, site: { allowedSourceCidrs: ['10.1.0.99/32', 'fd00:1::99/128'] } }) as LabOptions);

describe.each(LABS)('at a $role, $protocol inside the site, $dataplane', (options) => {
  const { role, protocol } = options;
  const isWorker = role === 'worker';
  const isNative = protocol === 'None';
  /** A worker without tunnels reaches other sites by its gateway, natively. */
  const hasTunnels = !(isWorker && isNative);
  let lab: BoundaryLab;
  beforeAll(async () => {
    lab = await openBoundaryLab(options);
  });
  afterAll(() => lab.close());

  const placeOf = (name: Attempt['to'] | Attempt['source'], family: Family): string =>
    name === 'ownPod'
      ? lab.own.pod[family]
      : name === 'node' || name === 'external'
        ? lab.own[name][family]
        : addressOf(name, family);
  const shotOf = ({ what: _, source, to, ...rest }: Attempt, family: Family): Shot => ({
    ...rest,
    source: placeOf(source, family),
    to: placeOf(to, family),
  });
  const counts = async (): Promise<Record<string, number>> => ({
    unlisted_exit: await lab.dropped('unlisted_exit'),
    unlisted_entry: await lab.dropped('unlisted_entry'),
    forged_source: await lab.dropped('forged_source'),
    no_route_back: await lab.dropped('no_route_back'),
  });

  /** It arrives nowhere, and the counter of the reason goes up. */
  const isRefused = (reason: string, attempts: readonly Attempt[]): void => {
    test.each(attempts.map((one) => [one.what, one] as const))(`%s: ${reason}`, async (_, attempt) => {
      for (const family of FAMILIES) {
        const before = (await counts())[reason]!;
        expect(await lab.shoot(shotOf(attempt, family)), `IPv${family}`).toEqual([]);
        expect((await counts())[reason], `IPv${family}`).toBeGreaterThan(before);
      }
    });
  };
  const passes = (attempts: readonly (Attempt & { readonly arrives: Place | 'node' })[]): void => {
    test.each(attempts.map((one) => [one.what, one] as const))('%s: passes', async (_, { arrives, ...attempt }) => {
      for (const family of FAMILIES)
        expect(await lab.shoot(shotOf(attempt, family)), `IPv${family}`).toEqual([arrives]);
    });
  };
  /** Asks over TCP, and tells whom the far end saw. */
  const seen = (attempt: Omit<Attempt, 'what'>, family: Family): string =>
    lab.ask(shotOf({ ...attempt, what: '' }, family));

  const outOfTunnel = (): void => {
    const far = { from: 'far', source: 'farPod' } as const;
    isRefused('unlisted_exit', [
      { what: 'to a metadata service', ...far, to: 'metadata' },
      { what: 'to a metadata service, over TCP', ...far, to: 'metadata', type: 'tcp' },
      { what: 'to the internet', ...far, to: 'internet' },
      { what: 'to the internet, in fragments', ...far, to: 'internet', bytes: 4000 },
      { what: 'with a node’s address to the internet', ...far, source: 'farNode', to: 'internet' },
      { what: 'with a near node’s address to a metadata service', ...far, source: 'nearNode', to: 'metadata' },
      ...(isWorker
        ? [
            { what: 'to the router of the LAN', ...far, to: 'router' } as const,
            { what: 'to a node of the LAN', ...far, to: 'nearNode' } as const,
            { what: 'to a host of the LAN, over TCP', ...far, to: 'stranger', type: 'tcp' } as const,
            { what: 'to what the pool of gateways routes', ...far, to: 'routed' } as const,
            { what: 'back into the overlay', ...far, to: 'fartherPod' } as const,
          ]
        : []),
    ]);

    passes([
      { what: 'to a pod of the node', ...far, to: 'ownPod', arrives: 'pod' },
      { what: 'to the node', ...far, to: 'node', arrives: 'node' },
      { what: 'to a Service here with a pod of the node', ...far, to: 'node', port: NODE_PORTS.local, arrives: 'pod' },
      {
        what: 'to a Service here with a pod beyond the overlay',
        ...far,
        to: 'node',
        port: NODE_PORTS.far,
        arrives: 'far',
      },
      // A gateway hands these to the tunnel of the node, which is not here.
      ...(isWorker
        ? [
            {
              what: 'to a Service here in the hostNetwork of a near node',
              ...far,
              to: 'node',
              port: NODE_PORTS.near,
              arrives: 'lan',
            } as const,
          ]
        : []),
      ...(isWorker
        ? []
        : ([
            { what: 'to a host among the nodes', ...far, to: 'stranger', arrives: 'lan' },
            { what: 'to what the pool routes', ...far, to: 'routed', arrives: 'lan' },
            ...(isNative
              ? ([{ what: 'to a near pod, natively', ...far, to: 'nearPod', arrives: 'lan' }] as const)
              : []),
            { what: 'on to a further gateway', ...far, to: 'fartherPod', arrives: 'far' },
          ] as const)),
    ]);

    if (!isWorker) {
      test('pods of others leave by the exits of a gateway with its address, and get their answers', () => {
        for (const family of FAMILIES)
          for (const to of ['stranger', 'routed'] as const)
            expect(seen({ ...far, to }, family)).toBe(lab.own.node[family]);
      });

      test('an error about what left by an exit comes back', async () => {
        for (const family of FAMILIES) {
          const before = await lab.errors('far');
          await lab.shoot(shotOf({ ...far, what: '', to: 'routed' }, family)); // nobody listens on UDP
          expect(await lab.errors('far'), `IPv${family}`).toBe(before + 1);
        }
      });
    }

    test('an exit of another section passes, of the pods that it names', async () => {
      const additions = [{ exitSources: ['100.66.20.9/32', 'fd64:66:20::9/128'] }];
      await lab.apply(lab.plan, additions);
      const attempt = { ...far, what: '', to: 'internet' } as const;
      for (const family of FAMILIES) {
        expect(await lab.shoot(shotOf(attempt, family)), `IPv${family}`).toEqual(['wan']);
        expect(await lab.shoot(shotOf({ ...attempt, source: 'farNode' }, family)), `IPv${family}`).toEqual([]);
      }
      await lab.apply(lab.plan);
    });
  };

  const natively = (): void => {
    const near = { from: 'lan', source: 'nearPod' } as const;
    isRefused('unlisted_exit', [
      { what: 'to a metadata service', ...near, to: 'metadata' },
      { what: 'to the internet', ...near, to: 'internet' },
      { what: 'to the internet, over TCP', ...near, to: 'internet', type: 'tcp' },
      ...(isWorker
        ? [{ what: 'of another site, to the internet', ...near, source: 'farPod', to: 'internet' } as const]
        : []),
    ]);
    isRefused('no_route_back', [{ what: 'by the WAN', ...near, from: 'wan', to: 'ownPod' }]);
    passes([
      { what: 'to a pod of the node', ...near, to: 'ownPod', arrives: 'pod' },
      { what: 'to a Service here', ...near, to: 'node', port: NODE_PORTS.local, arrives: 'pod' },
      ...(isWorker ? [] : ([{ what: 'into the overlay', ...near, to: 'farPod', arrives: 'far' }] as const)),
    ]);
  };

  const intoTunnel = (): void => {
    const lan = { from: 'lan', to: 'farPod' } as const;
    const wan = { from: 'wan', to: 'farPod' } as const;
    isRefused('unlisted_entry', [
      { what: 'a host of the LAN, to a pod', ...lan, source: 'stranger' },
      { what: 'a host of the LAN, to a pod, over TCP', ...lan, source: 'stranger', type: 'tcp' },
      { what: 'a host of the LAN, in fragments', ...lan, source: 'stranger', bytes: 4000 },
      { what: 'a host of the LAN, to a node', ...lan, source: 'stranger', to: 'farNode' },
      { what: 'the router, to a node', ...lan, source: 'router', to: 'farNode' },
      { what: 'a host of the WAN', ...wan, source: 'internet' },
      { what: 'a host of the WAN, to a node, over TCP', ...wan, source: 'internet', to: 'farNode', type: 'tcp' },
      { what: 'in the name of a near node, from the WAN', ...wan, source: 'nearNode' },
      { what: 'in the name of a listed host, from the WAN', ...wan, source: 'listed' },
      { what: 'in the name of what the pool routes, from the WAN', ...wan, source: 'routed' },
      ...(isNative ? [] : [{ what: 'a node that has a tunnel, past it', ...lan, source: 'nearNode' } as const]),
      ...(isWorker ? [{ what: 'what the pool of gateways routes', ...lan, source: 'routed' } as const] : []),
    ]);

    passes([
      { what: 'a host that the Site lists', ...lan, source: 'listed', arrives: 'far' },
      { what: 'a host that the Site lists, to a node', ...lan, source: 'listed', to: 'farNode', arrives: 'far' },
      { what: 'a pod of the node', from: 'pod', source: 'ownPod', to: 'farPod', arrives: 'far' },
      ...(isNative ? ([{ what: 'a node without a tunnel', ...lan, source: 'nearNode', arrives: 'far' }] as const) : []),
      ...(isWorker ? [] : ([{ what: 'what the pool routes', ...lan, source: 'routed', arrives: 'far' }] as const)),
    ]);

    test('a client of a Service, with the address of this node, and it gets its answer', () => {
      for (const family of FAMILIES) {
        const from = { from: 'lan', source: 'stranger', port: NODE_PORTS.far } as const;
        expect(seen({ ...from, to: 'node' }, family)).not.toBe(addressOf('stranger', family));
        expect(seen({ ...from, from: 'wan', source: 'internet', to: 'external' }, family)).not.toBe(
          addressOf('internet', family),
        );
      }
    });

    test('a listed host and a pod of the other site reach each other both ways', () => {
      for (const family of FAMILIES)
        expect(seen({ from: 'lan', source: 'listed', to: 'farPod' }, family)).toBe(addressOf('listed', family));
    });

    test('an entry of another section passes', async () => {
      await lab.apply(lab.plan, [{ entries: ['10.1.0.77/32', 'fd00:1::77/128'] }]);
      for (const family of FAMILIES)
        expect(await lab.shoot(shotOf({ ...lan, what: '', source: 'stranger' }, family))).toEqual(['far']);
      await lab.apply(lab.plan);
    });

    test('the mark of what may enter does not leave the node', async () => {
      const { marked } = lab;
      for (const family of FAMILIES)
        for (const to of ['farPod', 'ownPod', 'internet'] as const)
          expect(await lab.shoot(shotOf({ ...lan, what: '', source: 'listed', to }, family))).toHaveLength(1);
      expect(await marked()).toBe(0);
    });
  };

  const fromOutside = (): void => {
    isRefused('forged_source', [
      { what: 'a far pod’s, from the LAN', from: 'lan', source: 'farPod', to: 'ownPod' },
      { what: 'a far node’s, from the LAN', from: 'lan', source: 'farNode', to: 'ownPod' },
      { what: 'a far node’s, from the LAN, over TCP', from: 'lan', source: 'farNode', to: 'ownPod', type: 'tcp' },
      {
        what: 'a far node’s, from the WAN, in fragments',
        from: 'wan',
        source: 'farNode',
        to: 'ownPod',
        bytes: 4000,
      },
      {
        what: 'a far node’s, from the WAN, to a pod behind a tunnel',
        from: 'wan',
        source: 'farNode',
        to: 'farPod',
      },
      { what: 'of this node’s own pod, from the LAN', from: 'lan', source: 'ownPod', to: 'farPod' },
      ...(isNative
        ? []
        : [{ what: 'a near pod’s, from the LAN', from: 'lan', source: 'nearPod', to: 'ownPod' } as const]),
    ]);
    passes([
      { what: 'a far node, to the node itself', from: 'wan', source: 'farNode', to: 'node', arrives: 'node' },
      {
        what: 'a far node, to a Service with policy Local',
        from: 'wan',
        source: 'farNode',
        to: 'node',
        port: NODE_PORTS.local,
        arrives: 'pod',
      },
      {
        what: 'a host of the LAN, to a pod of the node',
        from: 'lan',
        source: 'stranger',
        to: 'ownPod',
        arrives: 'pod',
      },
    ]);
  };

  if (hasTunnels) {
    describe('out of a tunnel', outOfTunnel);
    describe('into a tunnel from outside', intoTunnel);
    describe('from outside, with an address that lives in the overlay', fromOutside);
  }
  if (isNative) describe('natively, with the source of another node’s pod', natively);

  test('pods of the node leave the network with its address, and get their answers', () => {
    for (const family of FAMILIES) {
      expect(seen({ from: 'pod', source: 'ownPod', to: 'internet' }, family)).toBe(lab.own.external[family]);
      expect(seen({ from: 'pod', source: 'ownPod', to: 'stranger' }, family)).toBe(lab.own.node[family]);
      if (hasTunnels) expect(seen({ from: 'pod', source: 'ownPod', to: 'farPod' }, family)).toBe(lab.own.pod[family]);
    }
  });
});
