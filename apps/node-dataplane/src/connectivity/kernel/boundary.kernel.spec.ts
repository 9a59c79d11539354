import { execFileSync } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Attempt, passagesOf, placeOf, questionsOf, refusalsOf, shotOf } from './boundary-attempts.testdata.ts';
import { type BoundaryLab, type LabOptions, openBoundaryLab } from './boundary-lab.testdata.ts';
import { devicesOf, FAMILIES } from './boundary-network.testdata.ts';
import { NO_NETWORK } from './own-network.ts';

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

  test('while its link changes to native routing, or from it, a near pod enters whose way back is a tunnel, and nobody elsewhere by its name', async () => {
    const inNode = (line: string): string =>
      execFileSync('nsenter', [`--net=${lab.ns.node.path}`, ...line.split(' ')], { encoding: 'utf8' });
    const blocks = ['100.65.31.0/24', 'fd64:65:31::/64'];
    const before = blocks.map((block) => inNode(`ip route show ${block}`) || inNode(`ip -6 route show ${block}`));
    for (const block of blocks) inNode(`ip route replace ${block} dev ${devicesOf(lab.plan).tunnel}`);
    await lab.apply({ ...lab.plan, alsoPlain: blocks }, [], { ...NO_NETWORK, besideOwn: ['eth0'] });
    const enter = { from: 'lan', source: 'nearPod', to: 'farPod' } as const;
    for (const family of FAMILIES) {
      expect(await lab.shoot(shotOf(lab, enter, family)), `IPv${family}`).toEqual(['far']);
      const dropped = await lab.dropped('unlisted_entry');
      for (const other of [{ from: 'wan' }, { source: 'stranger' }] as const)
        expect(await lab.shoot(shotOf(lab, { ...enter, ...other }, family)), `IPv${family}`).toEqual([]);
      expect(await lab.dropped('unlisted_entry')).toBe(dropped + 2);
    }
    for (const route of before) inNode(`ip route replace ${route.trim()}`);
    await lab.apply(lab.plan);
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
