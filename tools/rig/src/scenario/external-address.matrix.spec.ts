import { setTimeout as delay } from 'node:timers/promises';
import { annotations } from '@unbounded/crds';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { PLANS } from '../layout/addresses.ts';
import { NODE_APPS } from '../apps/agents.ts';
import { agentPids } from '../machine/cgroups.ts';
import { kubectl } from '../kubernetes/control-plane.ts';
import { down } from '../substrate/down.ts';
import { moveNat } from '../underlay/underlay.ts';
import { announcedAddress, gatewayName, layoutOf, type LabLayout } from '../layout/layout.ts';
import { readZone, writeZone } from '../underlay/names.ts';
import { DATAPLANES } from '../layout/options.ts';
import { flowDuring, podOn, timeUntil } from './scenario.ts';
import { up } from '../substrate/up.ts';
import { verify } from '../cli/verify.ts';

/**
 * Two sites without a cloud: their gateways are behind 1:1 NAT and have no ExternalIP, one is annotated with the NAT's
 * address, the other with a DNS name. NATs move, and traffic is back within a minute.
 */

const BACK_WITHIN_MS = 60_000;
const FLOW_SECONDS = 90;
/** Of the WAN: nobody else's. */
const FIRST_FREE_HOST = 200;

describe.each(DATAPLANES)('data path %s', (dataplane) => {
  const first = layoutOf({ topology: 'mapped', dataplane, workers: 1 });
  let layout = first;
  let host = FIRST_FREE_HOST;

  beforeAll(async () => {
    await down();
    await up(first);
  }, 300_000);
  afterAll(down, 60_000);

  const gatewayOf = (site: string) => layout.nodes.find((node) => node.site === site && node.role === 'gateway')!;

  /** The NATs of these sites get other addresses, all at once; then the zone follows. */
  const move = (...names: readonly string[]): void => {
    const before = layout;
    const sites = before.sites.map((site) => {
      if (!names.includes(site.name)) return site;
      const ips = before.underlayFamilies.map((family) => PLANS[family].wanHost(host));
      host += 1;
      const nodes = site.nodes.map((node) =>
        node.role === 'gateway' ? { ...node, external: { ips, ip: ips[0]!, by: 'router' as const } } : node,
      );
      return { ...site, nodes };
    });
    layout = { ...before, sites, nodes: sites.flatMap(({ nodes }) => nodes) } satisfies LabLayout;
    for (const [index, site] of sites.entries()) {
      if (names.includes(site.name)) moveNat(before.sites[index]!, site, layout);
    }
    const moved = names.map((name) => gatewayOf(name)).map(({ name, external }) => [gatewayName(name), external!.ips]);
    writeZone({ ...readZone(), ...(Object.fromEntries(moved) as ReturnType<typeof readZone>) });
  };

  /** What the pool of a site says of its gateway. */
  const listed = async (site: string): Promise<string> =>
    (
      await kubectl(layout, [
        'get',
        'gatewaypool',
        `${site}-gateways`,
        '-o',
        'jsonpath={.status.nodes[*].externalIPs[*]}',
      ])
    ).trim();

  const running = (): number[] => layout.nodes.flatMap(({ name }) => NODE_APPS.flatMap((app) => agentPids(name, app)));

  /** The last loss of a flow between the sites while something moves at its start, in milliseconds from that on. */
  const lastLossAfter = async (
    disturb: () => void,
  ): Promise<{ readonly lastLossMs: number; readonly lost: number }> => {
    const ends = { from: await podOn(layout, 's1-w1'), to: await podOn(layout, 's2-w1'), seconds: FLOW_SECONDS };
    const began = Date.now();
    let disturbedMs = 0;
    const { losses, lost } = await flowDuring(ends, async () => {
      disturbedMs = Date.now() - began;
      disturb();
      await delay(0);
    });
    const ends1 = losses.map(
      ({ atMillis, firstNumber, lastNumber }) => atMillis + (lastNumber - firstNumber + 1) - disturbedMs,
    );
    console.log(`lost ${lost}, the last ${Math.max(0, ...ends1)} ms after the move`);
    return { lastLossMs: Math.max(0, ...ends1), lost };
  };

  test('no gateway has an ExternalIP, and everything reaches everything', { timeout: 120_000 }, async () => {
    for (const { name } of [gatewayOf('s1'), gatewayOf('s2')]) {
      const { metadata, status } = JSON.parse(await kubectl(layout, ['get', 'node', name, '-o', 'json'])) as {
        metadata: { annotations: Record<string, string> };
        status: { addresses: { type: string }[] };
      };
      expect(status.addresses.map(({ type }) => type)).not.toContain('ExternalIP');
      expect(metadata.annotations[annotations.externalAddress]).toBe(
        announcedAddress(
          layout,
          layout.nodes.find((node) => node.name === name)!,
        ),
      );
    }
    expect(await listed('s2')).toBe(gatewayOf('s2').external!.ips.join(' '));
    expect(await verify(layout)).toBe(true);
  });

  test('the NAT behind the name moves: traffic is back, no agent was restarted', { timeout: 240_000 }, async () => {
    const agents = running();
    const { lastLossMs } = await lastLossAfter(() => move('s2'));
    expect(lastLossMs).toBeLessThan(BACK_WITHIN_MS);
    expect(await listed('s2')).toBe(gatewayOf('s2').external!.ips.join(' '));
    expect(running()).toEqual(agents);
    expect(await verify(layout)).toBe(true);
  });

  test(
    'both NATs move at once, and neither gateway can find the other but by its name',
    { timeout: 300_000 },
    async () => {
      const { name } = gatewayOf('s1');
      await kubectl(layout, [
        'annotate',
        'node',
        name,
        '--overwrite',
        `${annotations.externalAddress}=${gatewayName(name)}`,
      ]);
      await timeUntil(
        'the name is resolved',
        async () => (await listed('s1')) === gatewayOf('s1').external!.ips.join(' '),
        40_000,
      );
      const agents = running();
      const { lastLossMs, lost } = await lastLossAfter(() => move('s1', 's2'));
      expect(lost).toBeGreaterThan(0);
      expect(lastLossMs).toBeLessThan(BACK_WITHIN_MS);
      expect(running()).toEqual(agents);
      expect(await verify(layout)).toBe(true);
    },
  );
});
