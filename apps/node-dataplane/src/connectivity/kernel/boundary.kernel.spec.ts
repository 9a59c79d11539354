import { execFileSync } from 'node:child_process';
import { createRouteSocket } from '@unbounded/netlink';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Attempt, passagesOf, placeOf, questionsOf, refusalsOf, shotOf } from './boundary-attempts.testdata.ts';
import { type BoundaryLab, type LabOptions, openBoundaryLab } from './boundary-lab.testdata.ts';
import { devicesOf, FAMILIES, LAN_ROUTER } from './boundary-network.testdata.ts';
import { findNetwork, NO_NETWORK } from './own-network.ts';

/** The boundary of the overlay, packet by packet: what a row names is tried in each family. */

const site = { allowedSourceCidrs: ['10.1.0.99/32', 'fd00:1::99/128'] };
/** Both roles, both data paths, tunnels and native routing. */
const WORKER: LabOptions = { role: 'worker', protocol: 'VXLAN', dataplane: 'ebpf', site };
const GATEWAY: LabOptions = { role: 'gateway', protocol: 'WireGuard', dataplane: 'netlink', site };
const NATIVE_WORKER: LabOptions = { role: 'worker', protocol: 'None', dataplane: 'netlink', site };
const NATIVE_GATEWAY: LabOptions = { role: 'gateway', protocol: 'None', dataplane: 'ebpf', site };

const named = <T extends Attempt>(rows: readonly T[]): [string, T][] => rows.map((row) => [row.what, row]);

describe.each([WORKER, GATEWAY, NATIVE_WORKER, NATIVE_GATEWAY])(
  'at a $role, $protocol inside the site, $dataplane',
  (options) => {
    let lab: BoundaryLab;
    beforeAll(async () => {
      lab = await openBoundaryLab(options);
    });
    afterAll(() => lab.close());

    test.each(named(refusalsOf(options)))('is dropped and counted: %s', async (what, { reason, ...attempt }) => {
      for (const family of FAMILIES) {
        const before = await lab.dropped(reason);
        expect(await lab.shoot(shotOf(lab, attempt, family)), `${what}, IPv${family}`).toEqual([]);
        expect(await lab.dropped(reason), `${what}, IPv${family}`).toBeGreaterThan(before);
      }
    });

    test.each(named(passagesOf(options)))('passes: %s', async (what, { arrives, ...attempt }) => {
      for (const family of FAMILIES)
        expect(await lab.shoot(shotOf(lab, attempt, family)), `${what}, IPv${family}`).toEqual([arrives]);
    });

    test.each(named(questionsOf(options)))('is answered: %s', async (what, { sees, ...attempt }) => {
      for (const family of FAMILIES) {
        const shot = shotOf(lab, attempt, family);
        const seen = await lab.ask(shot);
        const wanted =
          sees === 'somebody else' ? expect.not.stringMatching(`^${shot.source}$`) : placeOf(lab, sees, family);
        expect(seen, `${what}, IPv${family}`).toEqual(wanted);
      }
    });
  },
);

describe('at a gateway', () => {
  const far = { from: 'far', source: 'farPod' } as const;
  let lab: BoundaryLab;
  beforeAll(async () => {
    lab = await openBoundaryLab(GATEWAY);
  });
  afterAll(() => lab.close());

  test('an error about what left by an exit comes back', async () => {
    for (const family of FAMILIES) {
      const before = await lab.errors('far');
      await lab.shoot(shotOf(lab, { ...far, to: 'routed' }, family)); // nobody listens on UDP
      expect(await lab.errors('far'), `IPv${family}`).toBe(before + 1);
    }
  });

  test('what other sections add passes, and nothing besides', async () => {
    await lab.apply(lab.plan, [
      { exitSources: ['100.66.20.9/32', 'fd64:66:20::9/128'] },
      { entries: ['10.1.0.77/32', 'fd00:1::77/128'] },
    ]);
    for (const family of FAMILIES) {
      expect(await lab.shoot(shotOf(lab, { ...far, to: 'internet' }, family))).toEqual(['wan']);
      expect(await lab.shoot(shotOf(lab, { ...far, source: 'farNode', to: 'internet' }, family))).toEqual([]);
      const enter = { from: 'lan', to: 'farPod' } as const;
      expect(await lab.shoot(shotOf(lab, { ...enter, source: 'stranger' }, family))).toEqual(['far']);
      expect(await lab.shoot(shotOf(lab, { ...enter, source: 'router' }, family))).toEqual([]);
    }
    await lab.apply(lab.plan);
  });

  describe('while its link changes to native routing, or from it,', () => {
    const blocks = ['100.65.31.0/24', 'fd64:65:31::/64'];
    const inNode = (line: string): string =>
      execFileSync('nsenter', [`--net=${lab.ns.node.path}`, ...line.split(' ')], { encoding: 'utf8' });
    let routes: string[];
    beforeAll(() => {
      routes = blocks.map((block) => inNode(`ip route show ${block}`) || inNode(`ip -6 route show ${block}`));
      for (const block of blocks) inNode(`ip route replace ${block} dev ${devicesOf(lab.plan).tunnel}`);
    });
    afterAll(async () => {
      for (const route of routes) inNode(`ip route replace ${route.trim()}`);
      await lab.apply(lab.plan);
    });

    test('a near pod sends whose way back is a tunnel, and nobody elsewhere by its name', async () => {
      const alsoPlainBy = blocks.map((prefix, index) => ({ prefix, gateways: [LAN_ROUTER[index]!] }));
      const plan = { ...lab.plan, alsoPlain: blocks, alsoPlainBy };
      const net = createRouteSocket({ netnsFd: lab.ns.node.fd });
      await lab.apply(plan, [], await findNetwork(net, await net.addresses.list(), plan));
      net.close();
      for (const family of FAMILIES)
        for (const [to, arrives] of [['farPod', 'far'] as const, ['ownPod', 'pod'] as const]) {
          const shot = { from: 'lan', source: 'nearPod', to } as const;
          expect(await lab.shoot(shotOf(lab, shot, family)), `IPv${family}`).toEqual([arrives]);
          const dropped = await lab.dropped('forged_source');
          expect(await lab.shoot(shotOf(lab, { ...shot, from: 'wan' }, family)), `IPv${family}`).toEqual([]);
          expect(await lab.dropped('forged_source')).toBe(dropped + 1);
          const stranger = { ...shot, source: 'stranger', to: 'farPod' } as const;
          expect(await lab.shoot(shotOf(lab, stranger, family)), `IPv${family}`).toEqual([]);
        }
    });

    test('each block comes by the device of its own neighbor, be it on the WAN', async () => {
      const others = ['100.65.32.0/24', 'fd64:65:32::/64'];
      const native = [0, 1].map((index) => ({ device: `eth${index}`, prefixes: [blocks[index]!, others[1 - index]!] }));
      await lab.apply({ ...lab.plan, alsoPlain: [...blocks, ...others] }, [], { ...NO_NETWORK, native });
      for (const [from, other, family] of [['lan', 'wan', 4] as const, ['wan', 'lan', 6] as const]) {
        const shot = { source: 'nearPod', to: 'farPod' } as const;
        expect(await lab.shoot(shotOf(lab, { ...shot, from }, family))).toEqual(['far']);
        expect(await lab.shoot(shotOf(lab, { ...shot, from: other }, family))).toEqual([]);
      }
    });
  });

  test('the mark of what may enter does not leave the node', async () => {
    for (const family of FAMILIES)
      for (const to of ['farPod', 'ownPod', 'internet'] as const)
        expect(await lab.shoot(shotOf(lab, { from: 'lan', source: 'listed', to }, family))).toHaveLength(1);
    expect(await lab.marked()).toBe(0);
  });
});

/** As kube-proxy's iptables mode and firewalld do. */
const DROPS_INVALID = 'table inet drops { chain f { type filter hook forward priority 10; ct state invalid drop; }\n}';

describe.each([GATEWAY, NATIVE_GATEWAY])(
  'at a $role, $protocol inside the site, that drops what connection tracking calls invalid',
  (options) => {
    const answer = { type: 'syn-ack' } as const;
    const through = passagesOf(options).filter(
      ({ to, arrives }) => to !== 'node' && arrives !== 'pod' && arrives !== 'echo',
    );
    let lab: BoundaryLab;
    beforeAll(async () => {
      lab = await openBoundaryLab(options);
      execFileSync('nsenter', [`--net=${lab.ns.node.path}`, 'nft', '-f', '-'], { input: DROPS_INVALID });
    });
    afterAll(() => lab.close());

    test.each(named(through.filter(({ from }) => from !== 'pod' && from !== 'echo')))(
      'the answers of a connection whose other direction another gateway carries pass: %s',
      async (what, { arrives, ...attempt }) => {
        for (const family of FAMILIES)
          expect(await lab.shoot(shotOf(lab, { ...attempt, ...answer }, family)), `${what}, IPv${family}`).toEqual([
            arrives,
          ]);
      },
    );

    test('those to its own pods, and of anybody else, do not', async () => {
      const attempts: Omit<Attempt, 'what'>[] = [
        { from: 'far', source: 'farPod', to: 'ownPod' },
        { from: 'lan', source: 'stranger', to: 'ownPod' },
        { from: 'lan', source: 'stranger', to: 'farPod' },
        { from: 'lan', source: 'stranger', to: 'internet' },
      ];
      for (const attempt of attempts)
        for (const family of FAMILIES)
          expect(await lab.shoot(shotOf(lab, { ...attempt, ...answer }, family))).toEqual([]);
    });
  },
);
