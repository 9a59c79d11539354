import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { verify } from '../../cli/verify.ts';
import { newSince } from '../../features/partner/firewall.ts';
import { partnerIps } from '../../features/partner/layout.ts';
import { seenByPartner } from '../../features/partner/partner.ts';
import { peersByPath } from '../../features/relay/relay.ts';
import { familyOf } from '../../layout/addresses.ts';
import { layoutOf } from '../../layout/layout.ts';
import type { LabOptions } from '../../layout/options.ts';
import { runAsync } from '../../machine/command.ts';
import { down } from '../../substrate/down.ts';
import { probePods } from '../../substrate/probes.ts';
import { inPodNetwork } from '../scenario.ts';
import { type Selected, upWithRule } from './rule.ts';
import { exchange } from './traffic.ts';
import { selectedAlone, uplinksDuring } from './uplinks.ts';

/**
 * Selected pods and a partner that admits their address alone. Five labs have every pair of data path, families, way between the
 * sites and form of the agents; in each the owner, a gateway of site s1, is on the pod's node, in its site and in another one.
 */

const LABS: readonly [string, Partial<LabOptions>][] = [
  ['eBPF, IPv4, agents as pods', { agents: 'pods' }],
  ['kernel routes, IPv4', { dataplane: 'netlink' }],
  ['eBPF, both families', { ip: 'dual' }],
  ['eBPF, IPv4, over the relay', { blockUdp: 'all' }],
  [
    'kernel routes, both families, over the relay, agents as pods',
    { dataplane: 'netlink', ip: 'dual', blockUdp: 'all', agents: 'pods' },
  ],
];

const PLACES = [
  ['on its node', 's1-g1'],
  ['in its site', 's1-w1'],
  ['in another site, of a worker', 's2-w1'],
  ['in another site, of a gateway', 's2-g1'],
] as const;

/** Of 16 MiB, each as large as a device may be given at once. */
const LEAST_PACKETS = (16 << 20) / 65_536;

describe.each(LABS)('%s', (_, options) => {
  const layout = layoutOf({ workers: 1, partner: true, ...options });
  let selected: Selected;

  beforeAll(async () => {
    selected = await upWithRule(layout);
  }, 400_000);
  afterAll(down, 60_000);

  test('the sites’ link goes by the relay where UDP is blocked, and there alone', () => {
    expect(peersByPath(selected.owner)).toEqual({ direct: 0, relay: layout.options.blockUdp === 'all' ? 1 : 0 });
  });

  test.each(PLACES)(
    'everything that a pod exchanges with the partner has the egress address: owner %s (%s)',
    { timeout: 120_000 },
    async (__, node) => {
      const pod = selected.pods.find((candidate) => candidate.node === node)!;
      const before = seenByPartner();
      const carried = await uplinksDuring(layout, selectedAlone(layout, selected), async () => {
        for (const ip of partnerIps(layout)) {
          const { pathMtu, seenAs, failures } = await exchange(pod, ip);
          console.log(`${node} to ${ip}: path MTU ${pathMtu}, seen as ${seenAs}`);
          expect(failures).toEqual([]);
          expect(seenAs).toBe(selected.addresses.find((address) => familyOf(address) === familyOf(ip)));
        }
      });
      expect(carried.improper).toEqual([]);
      expect([...carried.proper.keys()]).toEqual([selected.owner]);
      expect(carried.proper.get(selected.owner)).toBeGreaterThan(LEAST_PACKETS);
      const seen = newSince(before, seenByPartner());
      expect([...new Set(seen.map(({ source }) => source))].sort()).toEqual([...selected.addresses].sort());
      expect(seen.filter(({ verdict }) => verdict === 'refused')).toEqual([]);
    },
  );

  test(
    'the captures would see it: what another pod sends to the partner is on an uplink',
    { timeout: 60_000 },
    async () => {
      const other = (await probePods(layout)).find(
        ({ node, name }) => node === 's1-w1' && !name.startsWith('probe-a'),
      )!;
      const [ip = ''] = partnerIps(layout);
      const carried = await uplinksDuring(layout, selectedAlone(layout, selected), async () => {
        await runAsync([...inPodNetwork(other), 'ping', '-c3', '-i0.2', '-W1', ip]).catch(() => undefined);
      });
      expect(carried.improper).not.toEqual([]);
      expect([...carried.proper.keys()]).toEqual([]);
    },
  );

  test('selected pods of every node are admitted, others are refused', { timeout: 120_000 }, async () => {
    expect(selected.pods.map(({ node }) => node)).toEqual(layout.nodes.map(({ name }) => name).toSorted());
    expect(await verify(layout)).toBe(true);
  });
});
